"""Rows that cannot take part: late ones and refused ones are kept apart with the reason, and the query goes on."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pyspark.sql import SparkSession

from tests.stream.project import calls, channel_rows, faults, replayed, run_once, stamp, write_ceq, write_rows
from tests.stream.test_live import before

CALLS, FAULTS = calls(80), faults(range(3, 80, 9))
LATE = {"ts": stamp(2), "call": 999, "caller": 1, "area": "north", "seconds": 5.0}
AHEAD = {**LATE, "call": 998, "ts": "2126-03-01T00:00:00Z"}
TIMELESS = {**LATE, "call": 997, "ts": None}
UNREADABLE = '{"ts": "2026-03-'


def test_late_and_refused_rows_are_kept_apart_and_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = write_ceq(tmp_path)
    write_rows(tmp_path / "calls", CALLS, 40)
    write_rows(tmp_path / "faults", FAULTS, 5)
    whole = replayed(spark, path)
    add(tmp_path / "calls/part-00000.json", json.dumps(AHEAD), json.dumps(TIMELESS), UNREADABLE)
    add(tmp_path / "calls/part-00001.json", json.dumps(LATE))
    board, found = run_once(spark, path)
    assert found == before(path, whole, board.watermark)
    assert found
    letters = channel_rows(tmp_path, "dead_letters")
    assert {letter["source"] for letter in letters} == {"Calls"}
    assert {letter["position"] for letter in letters} == {f"file:{tmp_path}/calls/part-00000.json"}
    told = {letter["reason"]: letter["record"] for letter in letters}
    assert len(told) == len(letters) == 3
    assert told["it cannot be read"] == UNREADABLE
    assert json.loads(told["it has no time"])["call"] == TIMELESS["call"]
    assert json.loads(told["its time is too far ahead of the clock"])["call"] == AHEAD["call"]
    late = channel_rows(tmp_path, "late_rows")
    assert board.late == len(late) > 0
    assert {row["ts"].isoformat() for row in late} == {stamp(2)}
    assert "Short" in {row["event"] for row in late}


def add(path: Path, *lines: str) -> None:
    """Lines more in a file, which stays as old as it was."""
    kept = path.stat()
    path.write_text(path.read_text() + "".join(f"{line}\n" for line in lines))
    os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
