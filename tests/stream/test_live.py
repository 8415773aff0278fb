"""A live run on Spark gives what a replay gives, however its rows come, and each detection once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from estream.stream.detected import to_lines
from tests.stream.project import (
    TIMING,
    calls,
    faults,
    loaded,
    replayed,
    run_on,
    run_once,
    write_ceq,
    write_rows,
    written,
)

CALLS, FAULTS = calls(150), faults(range(3, 110, 9))
IDLE = ("watermark: 4 seconds", "idle_after: 500 ms")
FOREVER = 1 << 62


def project(
    folder: Path, size: int, order: list[int] | None = None, shards: int = 2, timing: Sequence[str] = TIMING
) -> Path:
    """The rows in files of this size, in this order."""
    rows = CALLS if order is None else [CALLS[place] for place in order]
    write_rows(folder / "calls", rows, size)
    write_rows(folder / "faults", FAULTS, max(size // 9, 1))
    return write_ceq(folder, shards, timing=timing)


def before(path: Path, detections: pa.Table, watermark: int) -> list[dict[str, Any]]:
    """The detections of a replay that a live run must have found when it has come so far."""
    plan = loaded(path).plan
    assert plan is not None
    ended = detections.filter(pa.array([end < watermark for end in detections.column("end").to_pylist()]))
    return [json.loads(line) for line in sorted(to_lines(plan, ended))]


@pytest.mark.parametrize(("size", "count"), [(1, 24), (7, 150), (10_000, 150)])
def test_micro_batches_of_any_size_give_what_a_replay_gives(
    spark: SparkSession, tmp_path: Path, size: int, count: int
) -> None:
    path = project(tmp_path, size, list(range(count)))
    board, found = run_once(spark, path)
    whole = replayed(spark, path)
    assert board.batches >= count / size
    assert board.rows == {"Calls": count, "Faults": len(FAULTS)}
    assert found == before(path, whole, board.watermark)
    # A window appears one batch after it has closed: a single batch must wait for those that never come.
    if size < count / 2:
        assert whole.num_rows > len(found) > 0
    if size == 7:
        assert {one["event"] for one in found} == {"Returned", "Trouble", "Crowd", "Surprise"}


@pytest.mark.parametrize(("shards", "size"), [(1, 75), (8, 25)])
def test_shards_arrival_within_the_watermark_an_idle_stream_and_a_stop_change_nothing(
    spark: SparkSession, tmp_path: Path, shards: int, size: int
) -> None:
    swapped = [place ^ 3 if place < 148 else place for place in range(150)]
    path = project(tmp_path, size, swapped, shards, IDLE)
    whole = replayed(spark, path, shards)
    begun = run_on(spark, path, lambda board, _: board.batches > 0)
    ended = run_on(spark, path, lambda _, found: found >= whole.num_rows)
    assert begun.late == ended.late == 0
    assert begun.rows["Calls"] < begun.rows["Calls"] + ended.rows["Calls"] == len(CALLS)
    # Time goes on by the clock where all streams are idle: so nothing is left that a replay finds.
    assert written(tmp_path / "detections") == before(path, whole, FOREVER)
