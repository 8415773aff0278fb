"""An operator that begins anew in a running stream: no row that waits is lost, none that is late is taken."""

from __future__ import annotations

from typing import Any

from estream.event.operator import Operator, OperatorState, begin, compile_operator, step
from estream.event.operator_segments import load, save, succeed
from tests.reference.operators_runs import SCHEMA, planned, rows_of, table_of


def counted(rows: int, schema: dict[str, str] = SCHEMA) -> Operator:
    """How many rows there are in every batch of so many rows."""
    window = {"rows": rows, "slide": "batch"}
    query = {"from": "S", "window": window, "select": {"ts": "window.end", "c": "count()", "last": "last(n)"}}
    return compile_operator(planned({"Q": query}, schema)["Q"])


def row(time: int, **more: Any) -> dict[str, Any]:
    return {**dict.fromkeys(SCHEMA), "ts": time, "n": time, **more}


def given(operator: Operator, state: OperatorState, times: list[int], watermark: int) -> list[tuple[int, int]]:
    rows = rows_of(step(operator, state, table_of(operator, [row(time) for time in times]), watermark))
    return [(one["c"], one["last"]) for one in rows]


def test_the_rows_that_wait_go_to_the_operator_that_begins_anew() -> None:
    twos, threes = counted(2), counted(3)
    before = begin(twos)
    assert given(twos, before, [1, 2, 3, 10, 11], watermark=10) == [(2, 2)]
    after = succeed(threes, [save(twos, before).segments], watermark=10)
    assert given(threes, after, [12, 13], watermark=13) == [(3, 12)]


def test_rows_before_the_watermark_are_late_for_an_operator_that_is_new() -> None:
    twos = counted(2)
    state = succeed(twos, [], watermark=10)
    assert given(twos, state, [9, 10, 11], watermark=20) == [(2, 11)]
    assert state.buffer.counts["late"] == 1


def test_rows_that_wait_at_an_operator_of_another_source_are_not_taken() -> None:
    queries = planned({"P": {"from": "S", "where": "n > 0"}, "Q": {"from": "P", "where": "n > 1"}})
    first, second = (compile_operator(query) for query in queries.values())
    state = begin(first)
    step(first, state, table_of(first, [row(5)]), 1)
    assert succeed(second, [save(first, state).segments], watermark=1).buffer.waiting.num_rows == 0


def test_rows_that_wait_have_the_columns_that_the_source_has_now() -> None:
    old = compile_operator(planned({"Q": {"from": "S", "where": "n > 0"}})["Q"])
    now = {name: kind for name, kind in SCHEMA.items() if name != "s"} | {"fresh": "int"}
    new = compile_operator(planned({"Q": {"from": "S", "where": "n > 0"}}, now)["Q"])
    state = begin(old)
    step(old, state, table_of(old, [row(5, k="a", s="gone")]), 1)
    state = load(new, save(old, state).segments)
    assert rows_of(step(new, state, new.source.empty_table(), 9)) == [
        {"ts": 5, "k": "a", "g": None, "x": None, "n": 5, "fresh": None}
    ]
