"""Windows against the plain reference: by rows and by time, row by row and in batches, however the rows come."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.event.operator import compile_operator
from estream.event.operator_order import STRETCH
from tests.reference import operators_stream as reference
from tests.reference.operators_runs import Cuts, compiled, in_order, planned, run, run_each, sample
from tests.reference.operators_stream import Row

AGGREGATES = [
    *((name, "x") for name in ("count", "sum", "avg", "min", "max", "stddev", "first", "last", "collect")),
    *((name, "n") for name in ("count", "sum", "avg", "min", "max", "approx_count_distinct")),
    *((name, "s") for name in ("count", "min", "max", "first", "last", "collect", "approx_count_distinct")),
    ("max", "ts"),
]
SELECT = {
    "ts": "window.end",
    "since": "window.start",
    "k": "k",
    "g": "g",
    "rows": "count()",
    **{f"{name}_{column}": f"{name}({column})" for name, column in AGGREGATES},
}
EXTENTS = st.builds(
    lambda by, size, slide: {by: size if by == "rows" else f"{size} us", "slide": slide},
    st.sampled_from(["rows", "time"]),
    st.integers(1, 9),
    st.sampled_from(["each", "batch"]),
)
CUTS = st.builds(Cuts, st.integers(1, 6), st.none() | st.integers(0, 99), st.booleans())
KEYS = st.sampled_from([(), ("k",), ("k", "g")])


def expected(rows: list[Row], window: dict[str, Any], partition: tuple[str, ...], group: tuple[str, ...]) -> list[Row]:
    by = "rows" if "rows" in window else "time"
    size = window["rows"] if by == "rows" else int(window["time"].split()[0])
    return [
        {
            "ts": end,
            "since": start,
            "k": inside[-1]["k"],
            "g": inside[-1]["g"],
            "rows": len(inside),
            **{
                f"{name}_{column}": reference.aggregate(name, [row[column] for row in inside])
                for name, column in AGGREGATES
            },
        }
        for inside, start, end in reference.windows(rows, size, by, window["slide"] == "batch", partition, group)
    ]


def same(found: list[Row], wanted: list[Row]) -> None:
    """Equal as bags of rows, doubles within 1e-9."""
    assert len(found) == len(wanted)
    for one, other in zip(sorted(found, key=_key), sorted(wanted, key=_key), strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            if isinstance(value, float) and isinstance(other[name], float):
                assert math.isclose(value, other[name], rel_tol=1e-9, abs_tol=1e-6), name
            else:
                assert value == other[name], (name, one, other)


def _key(row: Row) -> list[str]:
    """Sorts by what is exact."""
    return [repr(value) for name, value in row.items() if not name.startswith(("sum_x", "avg", "stddev"))]


@given(EXTENTS, KEYS, st.sampled_from([(), ("g",), ("s",)]), st.integers(0, 40), st.integers(0, 999), CUTS)
def test_every_aggregate_over_every_window_is_that_of_the_reference(
    window: dict[str, Any], partition: tuple[str, ...], group: tuple[str, ...], count: int, seed: int, cuts: Cuts
) -> None:
    operator = compiled({"window": window, "partition_by": partition, "group_by": group, "select": SELECT})
    rows = sample(count, seed, span=30)
    same(run(operator, rows, cuts), expected(in_order(operator, rows), window, partition, group))


@pytest.mark.parametrize("slide", ["each", "batch"])
@pytest.mark.parametrize("extent", [{"time": "40 us"}, {"rows": 25}])
@pytest.mark.parametrize("stretch", [7, STRETCH])
def test_long_runs_forget_old_rows_and_change_nothing(
    extent: dict[str, Any], slide: str, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("estream.event.operator_order.STRETCH", stretch)
    window = extent | {"slide": slide}
    operator = compiled({"window": window, "partition_by": "k", "group_by": "g", "select": SELECT})
    rows = sample(3_000, seed=5, keys=40)
    wanted = expected(in_order(operator, rows), window, ("k",), ("g",))
    same(run(operator, rows, Cuts(60, seed=1, reload=True)), wanted)


@given(EXTENTS, st.integers(0, 999), CUTS)
def test_sums_are_the_same_bit_for_bit_however_the_rows_come(window: dict[str, Any], seed: int, cuts: Cuts) -> None:
    select = {name: SELECT[name] for name in ("ts", "k", "sum_x", "avg_x", "stddev_x")}
    operator = compiled({"window": window, "partition_by": "k", "select": select})
    rows = sample(60, seed, span=50)
    assert sorted(map(repr, run(operator, rows, cuts))) == sorted(map(repr, run(operator, rows)))


def test_having_sees_aggregates_and_where_sees_the_output() -> None:
    window = {"window": {"rows": 3}, "select": {"ts": "ts", "top": "max(n)"}}
    rows = [{"ts": at, "k": "a", "g": 0, "x": 0.0, "n": n, "s": ""} for at, n in enumerate([5, 1, 1, 1, 7])]
    tops = [(row["ts"], row["top"]) for row in run(compiled({**window, "having": "count() = 3"}), rows)]
    assert tops == [(2, 5), (3, 1), (4, 7)]
    assert [row["top"] for row in run(compiled({**window, "having": "count() = 3", "where": "top > 4"}), rows)] == [
        5,
        7,
    ]


def test_expressions_over_several_aggregates() -> None:
    select = {"ts": "ts", "range": "max(n) - min(n)", "mean": "sum(n) / count(n)", "twice": "sum(n * 2)"}
    rows = [{"ts": at, "k": "a", "g": 0, "x": 0.0, "n": n, "s": ""} for at, n in enumerate([1, None, 4])]
    assert run(compiled({"window": {"rows": 2}, "select": select}), rows) == [
        {"ts": 0, "range": 0, "mean": 1.0, "twice": 2},
        {"ts": 1, "range": 0, "mean": 1.0, "twice": 2},
        {"ts": 2, "range": 0, "mean": 4.0, "twice": 8},
    ]


def test_a_huge_value_that_left_the_window_leaves_no_trace_in_sums() -> None:
    values = [1.0, 1e300, float("nan"), float("inf"), 1.0, 2.0, 3.0]
    rows = [{"ts": at, "k": "a", "g": 0, "x": x, "n": 0, "s": ""} for at, x in enumerate(values)]
    found = run(compiled({"window": {"rows": 2}, "select": {"ts": "ts", "sum": "sum(x)"}}), rows)
    assert [row["sum"] for row in found][-2:] == [3.0, 5.0]


def test_whole_sums_wrap_as_in_spark() -> None:
    rows = [{"ts": at, "k": "a", "g": 0, "x": 0.0, "n": 2**63 - 1, "s": ""} for at in range(3)]
    found = run(compiled({"window": {"rows": 2}, "select": {"ts": "ts", "sum": "sum(n)"}}), rows)
    assert [row["sum"] for row in found] == [2**63 - 1, -2, -2]


def test_nan_is_the_greatest_as_in_spark() -> None:
    rows = [{"ts": at, "k": "a", "g": 0, "x": x, "n": 0, "s": ""} for at, x in enumerate([1.0, float("nan"), -1.0])]
    found = run(compiled({"window": {"rows": 3}, "select": {"ts": "ts", "low": "min(x)", "top": "max(x)"}}), rows)
    assert [row["low"] for row in found] == [1.0, 1.0, -1.0]
    assert math.isnan(found[-1]["top"])


def test_queries_with_the_same_window_share_it_and_give_what_they_give_alone() -> None:
    window = {"from": "S", "window": {"time": "5 us"}, "partition_by": "k"}
    queries = {
        "Mean": {**window, "select": {"ts": "ts", "k": "k", "mean": "avg(x)"}, "where": "mean > 0"},
        "Busy": {
            **window,
            "select": {"ts": "ts", "k": "k", "mean": "avg(x)", "rows": "count()"},
            "having": "count() > 1",
        },
    }
    operators = planned(queries)
    rows = sample(200, seed=3)
    shared = compile_operator(*operators.values())
    assert len(shared.computation.aggregates.parts) == 2  # one sum and one count for both queries
    alone = {name: run(compile_operator(one), rows) for name, one in operators.items()}
    assert run_each(shared, rows, Cuts(4, seed=2, reload=True)) == alone
