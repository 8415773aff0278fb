"""`estream replay --host process`: streams, filters, own operators and patterns give what Spark's replay gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from estream.app import RunOptions, job_of
from estream.errors import EStreamError
from estream.stream.detected import joined, to_lines
from estream.stream.in_process import detect_in_process
from tests.stream.project import calls, faults, loaded, replayed, run_once, write_ceq, write_rows
from tests.stream.test_live import FOREVER, before

OWN = """\
version: 1
name: own
streams:
  Calls:
    source: {{format: json, options: {{path: "{folder}/calls", maxFilesPerTrigger: 1}}}}
    schema: {{ts: timestamp, call: bigint, caller: int, area: string, seconds: double}}
    time: ts
    watermark: 10 seconds
  Faults:
    source: {{format: json, options: {{path: "{folder}/faults", maxFilesPerTrigger: 1}}}}
    schema: {{ts: timestamp, fault: bigint, area: string}}
    time: ts
queries:
  North: {{from: Calls, where: area = 'north'}}
  Change:
    from: North
    modify: {{function: adiff, attributes: [seconds], partition_by: caller, keep: new}}
    where: seconds > 10
  Recent:
    from: Calls
    partition_by: caller
    window: {{rows: 5}}
    select: {{caller: last(caller), area: last(area), total: sum(seconds), ts: last(ts)}}
    start: 2026-03-01T00:00:20Z
    stop: 2026-03-01T00:01:40Z
  Callers: {{from: Calls, first_unique: [caller, area]}}
events:
  Jump: {{on: Change, id: [call]}}
  Much: {{on: Recent, mask: total > 250}}
  New: {{on: Callers, id: [call]}}
  Fault: {{on: Faults, id: [fault]}}
  Longer:
    on: Calls
    partition_by: caller
    pattern: . down down
    define: {{down: seconds < last(seconds)}}
    output: {{caller: caller, calls: count()}}
    id: [call]
  Surprise: {{when: Jump ; Fault, context: recent, partition_by: area, within: 30 seconds}}
  Overload: {{when: Much ; Fault, context: chronicle, partition_by: area, within: 1 minute}}
  Begun: {{when: New ; Jump, context: recent, partition_by: area, within: 1 minute}}
  Quiet: {{when: "absent(Fault, Fault, 8 s)", partition_by: area}}
"""


def project(folder: Path) -> Path:
    write_rows(folder / "calls", calls(150), 50)
    write_rows(folder / "faults", faults(range(3, 110, 9)), 5)
    path = folder / "own.yaml"
    path.write_text(OWN.format(folder=folder))
    return path


def in_process(path: Path) -> list[dict[str, Any]]:
    job = job_of(loaded(path), path.parent, {}, RunOptions())
    inputs = {"Calls": path.parent / "calls", "Faults": path.parent / "faults"}
    found = joined(detect_in_process(job.plan, job.checked, inputs, job.channels))
    return [json.loads(line) for line in sorted(to_lines(job.plan, found))]


def test_it_gives_what_spark_gives_live_and_in_a_replay(spark: SparkSession, tmp_path: Path) -> None:
    path = project(tmp_path)
    found, whole = in_process(path), replayed(spark, path)
    assert {one["event"] for one in found} == {"Longer", "Surprise", "Overload", "Begun", "Quiet"}
    assert found == before(path, whole, FOREVER)
    board, live = run_once(spark, path)
    assert live == before(path, whole, board.watermark)
    assert {one["event"] for one in live} == {one["event"] for one in found}


def test_a_query_that_needs_sql_is_told(tmp_path: Path) -> None:
    write_rows(tmp_path / "calls", calls(3), 3)
    write_rows(tmp_path / "faults", faults([1]), 1)
    with pytest.raises(EStreamError, match=r"reads 'Long', which needs Spark \(sql\); leave out --host process"):
        in_process(write_ceq(tmp_path))
