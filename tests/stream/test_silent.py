"""Streams that are silent or empty: they hold nobody up, and what is due on them comes by the clock."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.stream.project import calls, replayed, run_on, write_rows, written
from tests.stream.test_live import FOREVER, before

CEQ = """\
version: 1
name: silent
streams:
  Calls:
    source: {{format: json, options: {{path: "{folder}/calls"}}}}
    schema: {{ts: timestamp, call: bigint, caller: int, area: string, seconds: double}}
    time: ts
    watermark: 1 second
    idle_after: 2 seconds
  Faults:
    source: {{format: json, options: {{path: "{folder}/faults"}}}}
    schema: {{ts: timestamp, fault: bigint, area: string}}
    time: ts
    watermark: 1 second
    idle_after: 1 second
queries:
  Busy: {{sql: "SELECT area, count(*) AS calls, window.end AS ts FROM Calls GROUP BY area, window(ts, '5 seconds')"}}
events:
  Call: {{on: Calls, id: [call]}}
  Fault: {{on: Faults, id: [fault]}}
  Rush: {{on: Busy, mask: calls > 2}}
  Unbroken: {{when: "absent(Call, Fault, 3 seconds)", context: continuous, partition_by: area}}
  After: {{when: Rush + 2 seconds, context: continuous}}
rules:
  Tell: {{on: Unbroken, actions: [{{log: "unbroken"}}]}}
  Ask: {{on: After, actions: [{{log: "after"}}]}}
"""


def test_windows_close_and_deadlines_pass_on_streams_that_are_empty_or_fall_silent(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "silent.yaml"
    path.write_text(CEQ.format(folder=tmp_path))
    write_rows(tmp_path / "calls", calls(30), 30)
    write_rows(tmp_path / "faults", [], 1)
    last = whole_run(spark, path)
    board = run_on(spark, path, lambda _, found: found >= last.num_rows)
    assert written(tmp_path / "detections") == before(path, last, FOREVER)
    assert {one["event"] for one in written(tmp_path / "detections")} == {"Unbroken", "After"}
    assert board.rows["Calls"] == 30
    assert board.rows.get("Faults", 0) == 0


def whole_run(spark: SparkSession, path: Path) -> pa.Table:
    """What a replay gives: windows are complete, and pending timers act at the end."""
    (path.parent / "faults" / "none.json").write_text("")
    return replayed(spark, path)
