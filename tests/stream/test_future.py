"""A future query sees the rows of its span, runs on its own, and gives what the same rows give in a replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from estream.app import RunOptions, job_of
from estream.app_futures import Futures
from estream.history.database import Database
from estream.history.schedules import ScheduleStore
from estream.stream.detected import to_lines
from estream.stream.runner import Job, Runner
from estream.stream.sink import Outcome
from tests.stream.project import BEGIN, loaded, stamp, write_rows

CEQ = """\
version: 1
name: later
settings: {{detection: {{shards: 1}}}}
streams:
  Calls:
    source: {{format: json, options: {{path: "{folder}/calls"}}}}
    schema: {{ts: timestamp, call: bigint, kind: string}}
    time: ts
    watermark: 1 second
queries:
  Later: {{sql: "SELECT * FROM Calls WHERE kind = 'b'", start: "{start}", stop: "{stop}", missed: {missed}}}
events:
  A: {{on: Calls, mask: kind = 'a', id: [call]}}
  B: {{on: Later, id: [call]}}
  AB: {{when: A ; B, context: chronicle}}
"""


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [{"ts": stamp(second), "call": second, "kind": "ab"[second % 2]} for second in range(first, last)]


def run_once(spark: SparkSession, job: Job, futures: Futures) -> tuple[list[str], int]:
    """The detections as pairs of seconds, and the watermark."""
    found: list[str] = []
    reached = [0]

    def take(batch: int, detections: pa.Table) -> None:
        for line in to_lines(job.plan, detections) if detections.num_rows else ():
            parts = json.loads(line)["constituents"]
            found.append(" ".join(f"{part['event']}{part['attributes']['call']}" for part in parts))

    def watch(outcome: Outcome) -> None:
        reached[0] = outcome.progress["watermark"] if outcome.progress else reached[0]

    with futures.at_work(job):
        runner = Runner(job, spark, take, watch)
        try:
            assert runner.wait(240)
        finally:
            runner.stop()
    return found, reached[0]


def planned(folder: Path, missed: str = "run_late") -> Job:
    """The file, whose query sees the rows from second 10 on and before second 16."""
    path = folder / "later.yaml"
    path.write_text(CEQ.format(folder=folder, start=stamp(10), stop=stamp(16), missed=missed))
    return job_of(loaded(path), folder, {}, RunOptions(once=True))


def clock(second: int) -> int:
    return round(BEGIN.timestamp() + second) * 1_000_000


def state_of(job: Job, folder: Path) -> str:
    database = Database(job.settings.history.url, folder)
    try:
        return ScheduleStore(database, "later").all()["Later"].state
    finally:
        database.close()


def test_a_future_query_runs_on_its_own_and_its_rows_meet_the_others(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "calls", rows(0, 14), 14)
    futures = Futures(tmp_path)
    job = futures.job(planned(tmp_path))
    assert [stream.name for stream in job.plan.streams] == ["Calls", "Later"]
    first, watermark = run_once(spark, job, futures)
    assert first == ["A0 B11"]
    assert watermark <= clock(12)
    write_rows(tmp_path / "calls", rows(14, 30), 16)
    second, watermark = run_once(spark, job, futures)
    assert second == ["A2 B13", "A4 B15"]
    assert watermark == clock(28)
    assert state_of(job, tmp_path) == "over"
    assert [one.name.partition("__")[0] for one in (job.checkpoint / "archive").iterdir()] == ["later"]


@pytest.mark.parametrize(
    ("missed", "found", "state"), [("run_late", ["A0 B11", "A2 B13", "A4 B15"], "over"), ("skip", [], "skipped")]
)
def test_a_start_that_passed_while_nothing_ran(
    spark: SparkSession, tmp_path: Path, missed: str, found: list[str], state: str
) -> None:
    write_rows(tmp_path / "calls", rows(0, 30), 30)
    before = Futures(tmp_path, clock=lambda: clock(5))
    job = before.job(planned(tmp_path, missed))
    with before.at_work(job):
        assert state_of(job, tmp_path) == "waiting"
    after = Futures(tmp_path, clock=lambda: clock(40))
    job = after.job(planned(tmp_path, missed))
    assert run_once(spark, job, after) == (found, clock(28))
    assert state_of(job, tmp_path) == state


def test_before_its_start_time_goes_on_up_to_it_and_no_further(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "calls", rows(0, 30), 30)
    futures = Futures(tmp_path, clock=lambda: clock(5))
    job = futures.job(planned(tmp_path))
    assert run_once(spark, job, futures) == ([], clock(10))
    assert state_of(job, tmp_path) == "waiting"
