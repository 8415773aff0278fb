"""`start` and `stop` of EStream's own operators: they take the rows with start <= time < stop, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from estream.event.operator_chain import compile_chain
from tests.reference.operators_runs import Cuts, compiled, planned, run, sample

START, STOP = "1970-01-01T00:00:00.000010Z", "1970-01-01T00:00:00.000020Z"
QUERIES = {
    "modify": {"modify": {"function": "adiff", "attributes": ["n"], "partition_by": "k", "keep": "new"}},
    "window": {"window": {"rows": 3}, "partition_by": "k", "select": {"ts": "last(ts)", "total": "sum(n)"}},
    "first_unique": {"first_unique": ["k", "g"]},
    "where": {"where": "n >= 0"},
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_an_operator_with_a_span_gives_what_it_gives_of_the_rows_inside(query: dict[str, Any]) -> None:
    rows = sample(200, seed=3, span=30)
    inside = [row for row in rows if 10 <= row["ts"] < 20]
    spanned = run(compiled(query | {"start": START, "stop": STOP}), rows, Cuts(4, seed=1, reload=True))
    assert spanned == run(compiled(query), inside)
    assert spanned


def test_windows_of_another_span_are_not_shared() -> None:
    query = {"from": "S"} | QUERIES["window"]
    operators = planned({"Always": query, "Later": query | {"start": START}})
    assert len(compile_chain(list(operators.values())).operators) == 2
