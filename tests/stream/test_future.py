"""A future query sees the rows of its span, runs on its own, and gives what the same rows give in a replay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
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
  Later: {{sql: "SELECT * FROM Calls WHERE kind = 'b'", start: "{start}", stop: "{stop}"}}
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


def test_a_future_query_runs_on_its_own_and_its_rows_meet_the_others(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "later.yaml"
    path.write_text(CEQ.format(folder=tmp_path, start=stamp(10), stop=stamp(16)))
    write_rows(tmp_path / "calls", rows(0, 14), 14)
    futures = Futures(tmp_path)
    job = futures.job(job_of(loaded(path), tmp_path, {}, RunOptions(once=True)))
    assert [stream.name for stream in job.plan.streams] == ["Calls", "Later"]
    first, watermark = run_once(spark, job, futures)
    assert first == ["A0 B11"]
    assert watermark <= round(BEGIN.timestamp() + 12) * 1_000_000
    write_rows(tmp_path / "calls", rows(14, 30), 16)
    second, watermark = run_once(spark, job, futures)
    assert second == ["A2 B13", "A4 B15"]
    assert watermark == round(BEGIN.timestamp() + 28) * 1_000_000
    database = Database(job.settings.history.url, tmp_path)
    assert ScheduleStore(database, "later").all()["Later"].state == "over"
    database.close()
    assert [one.name.partition("__")[0] for one in (job.checkpoint / "archive").iterdir()] == ["later"]
