"""How fast detection inside Spark is: `python -m benchmarks.spark [--rows 4000000]`, ratios on one input in one run.

Every line is a streaming query over Parquet files with a checkpoint, one file a micro-batch. The first micro-batch
starts workers and is not counted. EStream's lines end with detections in Parquet files; the counts of W1, W3 and W3w
are checked.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from benchmarks import fraud, ticks
from estream.app import RunOptions, job_of, load
from estream.settings import Settings
from estream.stream.runner import Runner
from estream.stream.session import for_detection, open_session

KEYS = 10_000
FILES = 4
PEERS = {"W1": 10.0, "W3": 0.40, "W3w": 0.29}
"""Million events a second of Flink 2.3 at parallelism 2 (W1: its SQL)."""
STREAM = """\
version: 1
name: bench
settings: {{detection: {{shards: 2}}}}
streams:
  Rows:
    source: {{format: parquet, options: {{path: "{folder}/rows", maxFilesPerTrigger: 1}}}}
    schema: {{{schema}}}
    time: ts
    watermark: 1 us
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """A CEQ file over one stream of rows; `count` detections are right."""

    name: str
    schema: str
    rest: str
    count: int | None = None


PLAIN = "ts: timestamp, id: bigint, k: int, v: double"
PAIRED = """\
events:
  A: {on: Rows, mask: v < 0.5, id: [id]}
  B: {on: Rows, mask: v >= 0.5, id: [id]}
  E: {when: A ; B, context: continuous, partition_by: k, within: 1 h}
rules:
  R: {on: E, actions: [{log: "x"}]}
"""
MASKED = PAIRED.replace("v < 0.5", "v < 0.005").replace("v >= 0.5", "v >= 0.995")
FRAUD = "ts: timestamp, seq: bigint, kind: string, account: bigint"
SEQUENCE = """\
events:
  F: {on: Rows, mask: kind = 'F', id: [seq]}
  P: {on: Rows, mask: kind = 'P', id: [seq]}
  E: {when: F ; P, context: continuous, partition_by: account, within: WITHIN}
rules:
  R: {on: E, actions: [{log: "x"}]}
"""
FILTER = """\
events:
  High: {on: Rows, mask: price > 6, id: [seq]}
rules:
  R: {on: High, actions: [{log: "x"}]}
"""
SYNTHETIC = (Workload("1 % mask", PLAIN, MASKED), Workload("every row an event", PLAIN, PAIRED))
NAMED = (
    Workload("W1", "ts: timestamp, seq: bigint, symbol: string, price: double, volume: bigint", FILTER, 705_217),
    Workload("W3", FRAUD, SEQUENCE.replace("WITHIN", "30 d"), 489_724),
    Workload("W3w", FRAUD, SEQUENCE.replace("WITHIN", "60 s"), 466_808),
)


def rows_of(count: int) -> pa.Table:
    """Seeded rows of many keys, one a millisecond."""
    chance = np.random.default_rng(7)
    return pa.table(
        {
            "ts": pa.array(np.arange(count) * 1_000, pa.timestamp("us", "UTC")),
            "id": np.arange(count),
            "k": chance.integers(0, KEYS, count).astype(np.int32),
            "v": chance.random(count),
        }
    )


def frauds() -> pa.Table:
    """The rows of W3 and W3w."""
    data = fraud.generated()
    kinds = np.where(data.warning, "F", "P").tolist()
    times = pa.array(data.time).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "seq": data.number, "kind": kinds, "account": data.account})


def priced() -> pa.Table:
    """The rows of W1."""
    table = ticks.ticks()
    return table.append_column("seq", pa.array(np.arange(table.num_rows)))


def write(folder: Path, table: pa.Table) -> int:
    """The rows in several files, and one row without values much later, which lets the watermark pass all others."""
    folder.mkdir(parents=True)
    last = table.column("ts")[-1].as_py() + timedelta(days=40)
    size = -(-table.num_rows // FILES)
    parts = [table.slice(first, size) for first in range(0, table.num_rows, size)]
    for number, part in enumerate([*parts, pa.Table.from_pylist([{"ts": last}], table.schema)]):
        path = folder / f"rows-{number}.parquet"
        pq.write_table(part, path)
        os.utime(path, (number, number))
    return table.num_rows


def stream(session: SparkSession, folder: Path) -> DataFrame:
    """The rows of the synthetic stream."""
    reader = session.readStream.schema("ts timestamp, id bigint, k int, v double").option("maxFilesPerTrigger", 1)
    return reader.format("parquet").name("Rows").load(str(folder / "rows"))


def speed(figures: Iterable[tuple[int, float]]) -> float:
    """Million rows a second, of (rows, seconds) of micro-batches; the first one and those without rows do not count."""
    counted = [(rows, seconds) for rows, seconds in list(figures)[1:] if rows > 1]
    return sum(rows for rows, _ in counted) / sum(seconds for _, seconds in counted) / 1e6


def drained(frame: DataFrame, folder: Path) -> float:
    """The speed of a query over what is there."""
    writer = frame.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    query = writer.option("checkpointLocation", tempfile.mkdtemp(dir=folder)).start()
    query.awaitTermination()
    return speed((one.numInputRows, one.durationMs["triggerExecution"] / 1000) for one in query.recentProgress)


def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """An empty `mapInArrow`: looks at every batch, gives one row."""
    seen = sum(batch.num_rows for batch in batches)
    yield pa.record_batch([pa.array([seen], pa.int64())], names=["seen"])


class PerKey(StatefulProcessor):
    """The plain alternative: `A ; B` by hand, a call and a state for every key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """One list of waiting ids for each key."""
        self.waiting = handle.getListState("waiting", "id bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Pair each B with all A that wait."""
        import pandas as pd

        waiting = [one[0] for one in self.waiting.get()]
        found = []
        for frame in rows:
            for number, value in zip(frame["id"], frame["v"], strict=True):
                if value < 0.5:
                    waiting.append(number)
                else:
                    found += [(first, number) for first in waiting]
                    waiting = []
        self.waiting.put([(one,) for one in waiting]) if waiting else self.waiting.clear()
        yield pd.DataFrame(found, columns=["a", "b"])

    def close(self) -> None:
        """Nothing is open."""


def detected(session: SparkSession, workload: Workload, folder: Path, count: int) -> tuple[float, int]:
    """The speed and the detections of a run over what is there, with a checkpoint of its own."""
    place = Path(tempfile.mkdtemp(dir=folder))
    path = place / "bench.yaml"
    path.write_text(STREAM.format(folder=folder, schema=workload.schema) + workload.rest)
    loaded = load(path, {}, place)
    job = job_of(loaded, place, {}, RunOptions(once=True))
    found = []

    def take(batch: int, detections: pa.Table) -> None:
        if detections.num_rows:
            pq.write_table(detections, place / f"detections-{batch}.parquet")
            found.append(detections.num_rows)

    runner = Runner(job, session, take, lambda outcome: None)
    runner.wait()
    figures = runner.figures
    runner.stop()
    if workload.count is not None and count == fraud.ROWS and sum(found) != workload.count:
        raise SystemExit(f"{workload.name}: {sum(found):,} detections, {workload.count:,} are right")
    return speed(figures), sum(found)


def compare(session: SparkSession, folder: Path, rows: int) -> None:
    """The synthetic lines, beside each other."""
    write(folder / "rows", rows_of(rows))
    own = for_detection(session, 2)
    mapped = stream(own, folder).mapInArrow(nothing, "seen bigint")
    limit = drained(mapped, folder)
    print(f"{'Spark reading alone':28} {drained(stream(own, folder), folder):6.2f} M rows/s")
    print(f"{'empty mapInArrow':28} {limit:6.2f} M rows/s")
    for workload in SYNTHETIC:
        reached, found = detected(session, workload, folder, rows)
        share = f"{reached / limit:.0%} of the empty mapInArrow, {found:,} detections"
        print(f"{'EStream, ' + workload.name:28} {reached:6.2f} M rows/s, {share}")
    keyed = stream(own, folder).groupBy("k")
    plain = drained(keyed.transformWithStateInPandas(PerKey(), "a bigint, b bigint", "Append", "None"), folder)
    print(f"{'transformWithState per key':28} {plain:6.2f} M rows/s")


def workloads(session: SparkSession, folder: Path) -> None:
    """The named workloads, end to end."""
    for workload in NAMED:
        shutil.rmtree(folder / "rows", ignore_errors=True)
        count = write(folder / "rows", priced() if workload.name == "W1" else frauds())
        reached, found = detected(session, workload, folder, count)
        peer = PEERS[workload.name]
        told = f"{found:,} detections; Flink {peer} M: {reached / peer:.1f} x"
        print(f"{workload.name:28} {reached:6.2f} M events/s, {told}")


def main() -> None:
    """Print every line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--only", choices=("compare", "workloads"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = open_session(Settings(), "bench", {"spark.master": "local[2]"}, folder / "spark.log")
        if given.only != "workloads":
            compare(session, folder, given.rows)
        if given.only != "compare":
            workloads(session, folder)


if __name__ == "__main__":
    main()
