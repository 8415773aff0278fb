"""Cascades of a live run on Spark: what a rule raises comes back into the graph; a replay reads what was recorded."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from estream.app import Loaded, ReplayOptions, RunOptions, job_of, replay
from estream.app_rules import rules_at_work
from estream.history.database import Database
from estream.history.query import Filter, lines
from estream.stream.channel import Channel
from estream.stream.channel_schema import arrow_schema
from estream.stream.display import Board
from estream.stream.runner import Job, Runner
from tests.stream.project import loaded

CEQ = """\
version: 1
name: doors
settings: {detection: {shards: 2}, stream: {trigger: 100 ms}, rules: {cascade_depth: 2}}
streams:
  Doors:
    source: {channel: doors}
    schema: {ts: timestamp, door: bigint}
    time: ts
    watermark: 1 ms
    idle_after: 500 ms
events:
  Opened: {on: Doors, mask: door > 0}
  Alarm: {raised: {door: bigint, level: bigint}}
  Break: {when: Opened ; Alarm, context: recent, partition_by: door}
rules:
  alarm: {on: Opened, actions: [{raise: {event: Alarm, attributes: {door: Opened.door, level: "1"}}}]}
  again: {on: Alarm, actions: [{raise: {event: Alarm, attributes: {door: Alarm.door, level: Alarm.level + 1}}}]}
  police: {on: Break, actions: [{log: "level {Alarm.level}"}]}
"""
ROWS = arrow_schema({"ts": "timestamp", "door": "bigint"})


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Loaded]:
    folder = tmp_path_factory.mktemp("doors")
    path = folder / "doors.yaml"
    path.write_text(CEQ)
    return folder, loaded(path)


def until(is_so: Callable[[], bool], doors: Channel) -> None:
    """Wait for something that the run does, while rows that raise nothing move time on."""
    gate = threading.Event()
    for _ in range(400):
        if is_so():
            return
        doors.append(door(0))
        gate.wait(0.25)
    raise AssertionError("it did not come about")


def door(number: int) -> pa.Table:
    """A row of this moment."""
    return pa.table({"ts": [datetime.now(UTC)], "door": [number]}, schema=ROWS)


def fired(job: Job, folder: Path) -> list[tuple[str, str]]:
    """The firings in the order they were recorded, with their states."""
    database = Database(job.settings.history.url, folder)
    found = lines(database, Filter())
    database.close()
    return [(one.rule, one.state) for one in reversed(found)]


def test_a_raised_event_completes_a_composite_event_and_the_cascade_ends(
    spark: SparkSession, project: tuple[Path, Loaded]
) -> None:
    folder, file = project
    job = job_of(file, folder, {}, RunOptions())
    doors = Channel(job.channels / "doors").create(ROWS)
    doors.append(door(7))
    with rules_at_work(job.checked, job.plan, job.settings, folder, job.channels) as agenda:
        runner = Runner(job, spark, agenda.take, Board(job.plan).note)
        try:
            until(lambda: ("again", "dead") in fired(job, folder), doors)
        finally:
            runner.stop()
    assert sorted(fired(job, folder)) == [
        ("again", "dead"), ("again", "done"), ("alarm", "done"), ("police", "done"), ("police", "done")]  # fmt: skip


@pytest.mark.parametrize("host", ["process", "spark"])
def test_a_replay_reads_the_raised_events_that_were_recorded(
    spark: SparkSession, project: tuple[Path, Loaded], host: Literal["process", "spark"]
) -> None:
    folder, file = project
    job = job_of(file, folder, {}, RunOptions())
    came = [row for block in Channel(job.channels / "doors").read() for row in block.rows.to_pylist()]
    rows, output = folder / "doors.jsonl", folder / f"{host}.jsonl"
    rows.write_text("".join(json.dumps({**row, "ts": row["ts"].isoformat()}) + "\n" for row in came))
    replay(file, folder, {}, ReplayOptions({"Doors": rows}, output, host))
    found = [json.loads(line) for line in output.read_text().splitlines()]
    assert sorted(one["event"] for one in found) == ["Alarm", "Alarm", "Break", "Break", "Opened"]
