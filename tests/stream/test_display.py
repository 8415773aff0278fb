"""The figures of a run."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from estream.stream.display import Board
from estream.stream.sink import Outcome
from tests.stream.project import loaded, write_ceq


def test_the_time_of_a_run_begins_with_its_first_micro_batch(tmp_path: Path) -> None:
    plan = loaded(write_ceq(tmp_path)).plan
    assert plan is not None
    now = 100.0
    board = Board(plan, lambda: now)
    now = 200.0
    assert not board.is_over(60)
    board.note(Outcome(0, pa.table({"event": pa.array([], pa.string())}), (), (), None, ()))
    now = 259.0
    assert not board.is_over(60)
    now = 260.0
    assert board.is_over(60)
    assert not board.is_over(None)
