"""Stream modifiers against the plain reference, and the examples of the contract written with them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.event.operator import begin, step
from estream.event.operator_order import STRETCH
from estream.event.operator_segments import load, save
from tests.reference import operators_stream as reference
from tests.reference.operators_runs import Cuts, compiled, in_order, rows_of, run, sample, table_of
from tests.reference.operators_stream import Row

MINUTE = 60_000_000
CUTS = st.builds(Cuts, st.integers(1, 6), st.none() | st.integers(0, 99), st.booleans())
MODIFIERS = st.fixed_dictionaries(
    {
        "function": st.sampled_from(["adiff", "rdiff", "aslope"]),
        "attributes": st.sampled_from([["x"], ["n"], ["x", "n"]]),
        "partition_by": st.sampled_from([[], ["k"], ["k", "g"]]),
        "keep": st.sampled_from(["old", "new"]),
        "pseudo": st.sampled_from([0.0, 0.5]),
        "window": st.none() | st.integers(1, 12),
        "every": st.none() | st.integers(1, 15),
        "until": st.none() | st.integers(1, 30),
    }
)


def text(microseconds: int) -> str:
    return f"1970-01-01T00:00:00.{microseconds:06}Z"


def written(modify: dict[str, Any]) -> dict[str, Any]:
    """The modifier as a CEQ file has it."""
    said = {name: modify[name] for name in ("function", "attributes", "keep", "pseudo", "partition_by")}
    if modify["function"] == "aslope":
        said["over"] = "g"
    said |= {name: f"{modify[name]} us" for name in ("window", "every") if modify[name] is not None}
    return said | ({"until": text(modify["until"])} if modify["until"] is not None else {})


def as_bag(rows: list[Row]) -> list[str]:
    """Rows in no order, doubles to twelve digits."""
    return sorted(repr({k: float(f"{v:.12g}") if isinstance(v, float) else v for k, v in row.items()}) for row in rows)


@given(MODIFIERS, st.integers(0, 40), st.integers(0, 999), CUTS)
def test_every_modifier_is_that_of_the_reference(modify: dict[str, Any], count: int, seed: int, cuts: Cuts) -> None:
    if modify["window"] is None:
        modify = {**modify, "every": None}
    operator = compiled({"modify": written(modify)})
    rows = sample(count, seed, span=30)
    over = "g" if modify["function"] == "aslope" else None
    assert as_bag(run(operator, rows, cuts)) == as_bag(reference.modify(in_order(operator, rows), over=over, **modify))


@pytest.mark.parametrize("window", [None, 40, 7])
@pytest.mark.parametrize("stretch", [7, STRETCH])
def test_long_runs_forget_old_rows_and_change_nothing(
    window: int | None, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("estream.event.operator_order.STRETCH", stretch)
    every = 10 if window else None
    modify = {"function": "adiff", "attributes": ["n"], "partition_by": ["k"], "window": window, "every": every}
    said = {**modify, **({"window": f"{window} us", "every": "10 us"} if window else {})}
    said = {name: value for name, value in said.items() if value is not None}
    operator = compiled({"modify": said})
    rows = sample(3_000, seed=8, keys=50)
    wanted = reference.modify(in_order(operator, rows), **modify)
    assert as_bag(run(operator, rows, Cuts(60, seed=4, reload=True))) == as_bag(wanted)


def test_keep_says_from_which_row_the_other_columns_come_but_not_the_time() -> None:
    rows = [{"ts": at, "k": "a", "g": at, "x": 2.0 * at, "n": 0, "s": str(at)} for at in (1, 3)]
    for keep, s in (("old", "1"), ("new", "3")):
        (row,) = run(compiled({"modify": {"function": "adiff", "attributes": ["x"], "keep": keep}}), rows)
        assert (row["ts"], row["x"], row["s"]) == (3, 4.0, s)


def test_a_division_by_zero_is_null_and_pseudo_is_against_it() -> None:
    rows = [{"ts": at, "k": "a", "g": 0, "x": x, "n": 0, "s": ""} for at, x in enumerate([0.0, 1.0])]
    assert run(compiled({"modify": {"function": "rdiff", "attributes": ["x"]}}), rows)[0]["x"] is None
    assert run(compiled({"modify": {"function": "rdiff", "attributes": ["x"], "pseudo": 0.5}}), rows)[0]["x"] == 3.0


def test_a_slope_over_time_is_per_second() -> None:
    rows = [{"ts": at * 1_000_000, "k": "a", "g": 0, "x": x, "n": 0, "s": ""} for at, x in ((10, 5.0), (14, 7.0))]
    modify = {"function": "aslope", "attributes": ["x"], "over": "ts"}
    assert [row["x"] for row in run(compiled({"modify": modify}), rows)] == [0.5]


def test_a_window_comes_out_when_the_watermark_reaches_its_end_and_not_before() -> None:
    operator = compiled({"modify": {"function": "adiff", "attributes": ["n"], "window": "10 us"}})
    rows = [{"ts": at, "k": "a", "g": 0, "x": 0.0, "n": at, "s": ""} for at in (1, 8, 11)]
    state = begin(operator)
    assert step(operator, state, table_of(operator, rows), 9).num_rows == 0
    state = load(operator, save(operator, state).onto({}))
    assert [row["n"] for row in rows_of(step(operator, state, table_of(operator, []), 10))] == [7]


CARS = {"ts": "timestamp", "car_id": "bigint", "speed": "double", "seg": "int"}


def test_the_car_example_finds_the_speed_reduction() -> None:
    rush = {
        "modify": {
            "function": "rdiff",
            "attributes": ["speed"],
            "partition_by": "car_id",
            "keep": "new",
            "window": "2 minutes",
        },
        "where": "speed < -0.3",
    }
    speeds = {1: [60.0, 58.0, 30.0], 2: [60.0, 55.0, 50.0], 3: [40.0, 20.0, 41.0]}
    rows = [
        {"ts": at * MINUTE // 2, "car_id": car, "speed": speed, "seg": at}
        for car, three in speeds.items()
        for at, speed in enumerate(three)
    ]
    assert run(compiled(rush, CARS), rows, Cuts(3, seed=1, reload=True)) == [
        {"ts": 2 * MINUTE, "car_id": 1, "speed": -0.5, "seg": 2}
    ]


QUOTES = {"ts": "timestamp", "symbol": "string", "price": "double"}


def test_the_stock_example_finds_the_price_that_rose_by_a_fifth_within_an_hour_watched_every_five_minutes() -> None:
    risen = {
        "modify": {
            "function": "rdiff",
            "attributes": ["price"],
            "partition_by": "symbol",
            "keep": "new",
            "window": "1 hour",
            "every": "5 minutes",
        },
        "where": "price > 0.2",
    }
    rows = [{"ts": at * MINUTE, "symbol": "FLAT", "price": 10.0} for at in range(0, 180, 7)]
    rows += [{"ts": at * MINUTE, "symbol": "RISE", "price": 10.0 if at < 90 else 12.5} for at in range(0, 180, 10)]
    found = run(compiled(risen, QUOTES), rows, Cuts(5, seed=2, reload=True))
    assert {row["symbol"] for row in found} == {"RISE"}
    # Windows that see the price before and after minute 90 end from minute 95 to minute 140 (the next begins at 85).
    assert sorted(row["ts"] // MINUTE for row in found) == list(range(95, 145, 5))
    assert {row["price"] for row in found} == {0.25}
