"""A small project on disk: a CEQ file with a windowed query, a second stage and two streams, and its rows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from estream.app import Loaded, RunOptions, job_of, load
from estream.stream.channel import Channel
from estream.stream.detected import joined
from estream.stream.display import Board
from estream.stream.pack import to_table
from estream.stream.replay import replay_frame
from estream.stream.runner import Runner
from estream.stream.session import for_detection
from estream.stream.sink import FileSink
from estream.stream.source import Files
from estream.stream.source_formats import register
from estream.stream.sql_branch import Reader

LONGEST = 240
"""Seconds that a run may take, on a busy machine."""
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
TIMING = ("watermark: 10 seconds",)
CEQ = """\
version: 1
name: phones
settings: {{detection: {{shards: {shards}}}}}
streams:
  Calls:
    source: {{format: json, options: {{path: "{folder}/calls", maxFilesPerTrigger: 1}}}}
    schema: {{ts: timestamp, call: bigint, caller: int, area: string, seconds: double}}
    time: ts
    {timing}
  Faults:
    source: {{format: json, options: {{path: "{folder}/faults", maxFilesPerTrigger: 1}}}}
    schema: {{ts: timestamp, fault: bigint, area: string}}
    time: ts
    {timing}
queries:
  Long: {{sql: "SELECT *, seconds / 60 AS minutes FROM Calls WHERE seconds >= 0"}}
  Busy:
    sql: |
      SELECT area, count(*) AS calls, window.end AS ts FROM Long
      GROUP BY area, window(ts, '20 seconds')
  Change:
    from: Long
    modify: {{function: adiff, attributes: [seconds], partition_by: caller, keep: new}}
    where: seconds > 30
events:
  Jump: {{on: Change, id: [call]}}
  Short: {{on: Calls, mask: seconds < {short}, id: [call]}}
  Lengthy: {{on: Long, mask: minutes > 1, id: [call]}}
  Fault: {{on: Faults, id: [fault]}}
  Rush: {{on: Busy, mask: calls > 2}}
  Returned:
    when: Short ; Lengthy
    context: chronicle
    partition_by: caller
    within: 2 minutes
  Trouble:
    when: Returned ; Fault
    context: continuous
    partition_by: {{Returned: area, Fault: area}}
    within: 5 minutes
  Crowd:
    when: Rush ; Lengthy
    context: recent
    partition_by: area
    within: 1 minute
  Surprise:
    when: Jump ; Fault
    context: recent
    partition_by: area
    within: 30 seconds
rules:
  Wonder: {{on: Surprise, actions: [{{log: "surprise"}}]}}
  Tell: {{on: Trouble, actions: [{{log: "trouble"}}]}}
  Ask: {{on: Crowd, actions: [{{log: "crowd"}}]}}
  Note: {{on: Returned, actions: [{{log: "returned"}}]}}
"""


def calls(count: int) -> list[dict[str, Any]]:
    """Rows of calls, one a second, of 5 callers in 2 areas."""
    return [
        {
            "ts": stamp(second),
            "call": second,
            "caller": second * 7 % 5,
            "area": "north" if second * 11 % 3 else "south",
            "seconds": float(second * 37 % 101),
        }
        for second in range(count)
    ]


def faults(times: Iterable[int]) -> list[dict[str, Any]]:
    """Rows of faults at these seconds."""
    return [{"ts": stamp(second), "fault": second, "area": "north" if second % 2 else "south"} for second in times]


def stamp(second: float) -> str:
    """A time as JSON has it."""
    return (BEGIN + timedelta(seconds=second)).isoformat()


def write_rows(folder: Path, rows: Sequence[dict[str, Any]], size: int) -> None:
    """Files of so many rows, to be read in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    have = len(list(folder.iterdir()))
    for number, first in enumerate(range(0, len(rows), size), have):
        path = folder / f"part-{number:05}.json"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows[first : first + size]))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def write_ceq(folder: Path, shards: int = 2, short: int = 20, timing: Sequence[str] = TIMING) -> Path:
    """The CEQ file of the project; `timing` are the keys that say how the time of the streams goes."""
    path = folder / "phones.yaml"
    path.write_text(CEQ.format(folder=folder, shards=shards, short=short, timing="\n    ".join(timing)))
    return path


def loaded(path: Path) -> Loaded:
    """The file, which must be right."""
    found = load(path, {}, path.parent)
    assert not found.is_wrong, [str(problem) for problem in found.problems]
    return found


def run_once(spark: SparkSession, path: Path) -> tuple[Board, list[dict[str, Any]]]:
    """Run over what is there, in the session of the tests; gives the figures and all detections so far."""
    job = job_of(loaded(path), path.parent, {}, RunOptions(once=True))
    board = Board(job.plan)
    sink = FileSink(path.parent / "detections", job.plan)
    runner = Runner(job, spark, sink.take, board.note)
    try:
        assert runner.wait(LONGEST)
    finally:
        runner.stop()
    return board, written(path.parent / "detections")


def run_on(spark: SparkSession, path: Path, is_enough: Callable[[Board, int], bool]) -> Board:
    """Run live until the figures, and how many detections are written in all, are enough."""
    job = job_of(loaded(path), path.parent, {}, RunOptions())
    board, folder = Board(job.plan), path.parent / "detections"
    runner = Runner(job, spark, FileSink(folder, job.plan).take, board.note)
    until = time.monotonic() + LONGEST
    try:
        while not is_enough(board, len(written(folder))) and time.monotonic() < until:
            assert not runner.wait(0.1)
    finally:
        runner.stop()
    return board


def written(folder: Path) -> list[dict[str, Any]]:
    """The detections in a folder of a sink, in no order that matters."""
    lines = [line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text().splitlines()]
    return [json.loads(line) for line in sorted(lines)]


def channel_rows(folder: Path, channel: str) -> list[dict[str, Any]]:
    """All rows of a channel of the project."""
    opened = Channel(folder / ".estream" / "channels" / channel)
    return pa.Table.from_batches((block.rows for block in opened.read()), opened.schema).to_pylist()


def replayed(spark: SparkSession, path: Path, shards: int = 2) -> pa.Table:
    """The detections of a replay over the project's rows."""
    found = loaded(path)
    assert found.plan is not None
    assert found.checked is not None
    session = for_detection(spark, shards)
    register(session)
    inputs = {"Calls": path.parent / "calls", "Faults": path.parent / "faults"}
    reader = Reader(session, found.checked, Files(path.parent / "channels", inputs))
    packed = replay_frame(found.plan, found.checked, reader, shards).filter("kind = 'detections'").toArrow()
    return joined(to_table(payload.as_py()) for payload in packed.column("payload"))
