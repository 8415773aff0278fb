"""What a micro-batch costs: over many of them, with much that waits, and from a row to its detection.

`python -m benchmarks.spark_batches MODE`; each mode ends after some minutes at most, and says how far it came.

- `many`: micro-batches of 1,000 rows from a channel, until there were 500 or the time is over;
- `waiting`: the same, once with nothing and once with 64 MB that waits in each shard;
- `latency`: a live run, first silent, then with 1,000 rows a second.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import SparkSession

from estream.app import RunOptions, job_of, load
from estream.settings import Settings
from estream.stream.channel import Channel
from estream.stream.channel_schema import parse_columns
from estream.stream.runner import Runner
from estream.stream.session import open_session

ROWS = 1_000
"""Of a micro-batch, and of a second."""
ACTIVE = 1_000
"""Keys of the rows that come while it is measured."""
WAITING = 2_000_000
"""Rows that wait, each under a key of its own: 64 MB in each of two shards."""
WARM = 10
"""The first micro-batches start workers and are not counted."""
CEQ = """\
version: 1
name: bench
settings: {{detection: {{shards: 2}}, stream: {{trigger: 1 ms}}}}
streams:
  Rows: {{source: {{channel: rows, options: {{from: first, max_rows: {most}}}}}, schema: {schema}, time: ts,
         watermark: 1 us}}
events:
  A: {{on: Rows, mask: v < 0.5, id: [id]}}
  B: {{on: Rows, mask: v >= 0.5, id: [id]}}
  E: {{when: A ; B, context: continuous, partition_by: k, within: 30 d}}
rules:
  R: {{on: E, actions: [{{log: "x"}}]}}
"""
Take = Callable[[int, pa.Table], None]


def rows_at(times: npt.NDArray[np.int64], first: int, keys: npt.NDArray[np.int64]) -> pa.Table:
    """Rows at these times, of which every second is an A."""
    ids = np.arange(first, first + len(times))
    stamps = pa.array(times).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": stamps, "id": ids, "k": keys, "v": (ids % 2) * 0.5 + 0.25})


def waiting(count: int) -> pa.Table:
    """Rows that find no partner, before all others."""
    rows = rows_at(np.arange(-count, 0), -count, np.arange(ACTIVE, ACTIVE + count))
    return rows.set_column(3, "v", pa.array(np.zeros(count)))


def channel_in(place: Path) -> Channel:
    """The channel that the run reads."""
    return Channel(place / ".estream/channels/rows").create(
        parse_columns("ts timestamp, id bigint, k bigint, v double")
    )


def started(session: SparkSession, place: Path, take: Take, most: int, *, once: bool) -> Runner:
    """A run over the channel, with a checkpoint of its own."""
    path = place / "bench.yaml"
    path.write_text(CEQ.format(most=most, schema="{ts: timestamp, id: bigint, k: bigint, v: double}"))
    return Runner(job_of(load(path, {}, place), place, {}, RunOptions(once=once)), session, take, lambda outcome: None)


def batches(session: SparkSession, folder: Path, count: int, seconds: float, waits: int = 0) -> list[float]:
    """Seconds of each micro-batch of 1,000 rows, of so many or as many as the time allows.

    What waits comes first, in micro-batches of the same size limit: so it is given to one run, and the rows that are
    measured to the next one on its checkpoint.
    """
    place = Path(tempfile.mkdtemp(dir=folder))
    channel = channel_in(place)
    if waits:
        channel.append(waiting(waits))
        first = started(session, place, lambda batch, detections: None, waits, once=True)
        first.wait()
        first.stop()
    times = np.arange(count * ROWS) * 1000
    channel.append(rows_at(times, 0, np.arange(count * ROWS) // 2 % ACTIVE))
    ended: list[float] = []
    runner = started(session, place, lambda batch, detections: ended.append(time.monotonic()), ROWS, once=True)
    runner.wait(seconds)
    runner.stop()
    return np.diff(ended)[WARM:].tolist()


def in_parts(seconds: Sequence[float], parts: int) -> list[str]:
    """The median of each part of the micro-batches, in milliseconds."""
    return [f"{median(part) * 1000:.0f}" for part in np.array_split(np.array(seconds), parts)]


def many(session: SparkSession, folder: Path, count: int, limit: float) -> None:
    """Whether the cost grows with the number of micro-batches."""
    taken = batches(session, folder, count + WARM + 1, limit)
    print(f"{len(taken)} micro-batches of {ROWS:,} rows; median ms in fifths: {', '.join(in_parts(taken, 5))}")


def with_waiting(session: SparkSession, folder: Path, count: int, limit: float) -> None:
    """Whether the cost grows with what waits."""
    for waits in (0, WAITING, 0, WAITING):
        taken = batches(session, folder, count + WARM + 1, limit / 4, waits)
        told = f"{len(taken)} micro-batches, median {median(taken) * 1000:.0f} ms"
        print(f"{waits:>9,} rows wait: {told}")


def latency(session: SparkSession, folder: Path, limit: float) -> None:
    """From a row's time to its detection, beside the micro-batches of a silent stream."""
    place = Path(tempfile.mkdtemp(dir=folder))
    channel = channel_in(place)
    ended: list[float] = []
    late: list[float] = []

    def take(batch: int, detections: pa.Table) -> None:
        ended.append(time.time())
        if detections.num_rows:
            ends = np.asarray(detections.column("end").to_numpy())
            late.extend((ended[-1] - ends / 1e6).tolist())

    runner = started(session, place, take, 1_000_000, once=False)
    feed(channel, limit / 4)
    warm, already = len(ended), len(late)
    runner.wait(limit / 4)
    silent = np.diff(ended[warm + 1 :]).tolist()
    begun = len(ended)
    feed(channel, limit / 4)
    runner.stop()
    busy = np.diff(ended[begun:]).tolist()
    waited = sorted(late[already:])
    cuts = quantiles(waited, n=20)
    print(f"silent: {len(silent)} micro-batches, median {median(silent) * 1000:.0f} ms")
    print(f"{ROWS:,} rows/s: {len(busy)} micro-batches, median {median(busy) * 1000:.0f} ms")
    print(f"row to detection: median {median(waited) * 1000:.0f} ms, 95 % within {cuts[18] * 1000:.0f} ms")


def feed(channel: Channel, seconds: float) -> None:
    """Append 1,000 rows a second, in a hundred pieces, each row with the time it is appended at."""
    piece, until, sent = ROWS // 100, time.monotonic() + seconds, int(time.time() * 1000)
    due = time.monotonic()
    while due < until:
        now = time.time_ns() // 1000
        numbers = np.arange(sent, sent + piece)
        channel.append(rows_at(now - np.arange(piece)[::-1], sent, numbers // 2 % ACTIVE))
        sent, due = sent + piece, due + 0.01
        time.sleep(max(0.0, due - time.monotonic()))


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("many", "waiting", "latency"))
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=200.0, help="how long it is measured, at most")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = open_session(Settings(), "bench", {"spark.master": "local[2]"}, folder / "spark.log")
        if given.mode == "many":
            many(session, folder, given.batches, given.seconds)
        elif given.mode == "waiting":
            with_waiting(session, folder, given.batches, given.seconds)
        else:
            latency(session, folder, given.seconds)


if __name__ == "__main__":
    main()
