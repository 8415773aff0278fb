"""`unique`, `first_unique` and `where` against the plain reference."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.errors import EStreamError
from estream.event.operator import begin, compile_operator, step
from tests.reference import operators_stream as reference
from tests.reference.operators_runs import Cuts, compiled, in_order, planned, run, sample, table_of
from tests.reference.operators_stream import Row

CUTS = st.builds(Cuts, st.integers(1, 6), st.none() | st.integers(0, 99), st.booleans())
COLUMNS = st.sampled_from([("g",), ("s", "n"), ("x",)])
PARTITIONS = st.sampled_from([(), ("k",)])
SIZES = st.none() | st.integers(1, 12)


def as_bag(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


def window(by: str, size: int | None, slide: str) -> dict[str, Any]:
    if size is None:
        return {}
    return {"window": {by: size if by == "rows" else f"{size} us", "slide": slide}}


@given(COLUMNS, PARTITIONS, SIZES, st.sampled_from(["rows", "time"]), st.booleans(), st.integers(0, 999), CUTS)
def test_first_unique_is_that_of_the_reference(
    columns: tuple[str, ...], partition: tuple[str, ...], size: int | None, by: str, batch: bool, seed: int, cuts: Cuts
) -> None:
    query = {"first_unique": columns, "partition_by": partition, **window(by, size, "batch" if batch else "each")}
    operator = compiled(query)
    rows = sample(40, seed, span=30)
    wanted = reference.first_unique(in_order(operator, rows), columns, partition, size, by, batch)
    assert as_bag(run(operator, rows, cuts)) == as_bag(wanted)


@given(COLUMNS, PARTITIONS, SIZES, st.sampled_from(["rows", "time"]), st.integers(0, 999), CUTS)
def test_unique_is_that_of_the_reference(
    columns: tuple[str, ...], partition: tuple[str, ...], size: int | None, by: str, seed: int, cuts: Cuts
) -> None:
    operator = compiled({"unique": columns, "partition_by": partition, **window(by, size, "batch")})
    rows = sample(40, seed, span=20)
    wanted = reference.last_unique(in_order(operator, rows), columns, partition, size, by)
    assert as_bag(run(operator, rows, cuts)) == as_bag(wanted)


@pytest.mark.parametrize("by", ["rows", "time"])
def test_values_that_left_every_window_are_forgotten(by: str) -> None:
    operator = compiled({"first_unique": "n", "partition_by": "k", **window(by, 20, "each")})
    rows = [{**row, "n": place // 2} for place, row in enumerate(sample(3_000, seed=2))]
    state, found = begin(operator), 0
    ordered = in_order(operator, rows)
    for at in range(0, 3_000, 100):
        found += step(operator, state, table_of(operator, ordered[at : at + 100]), 0, at == 2_900).num_rows
    assert found == len(reference.first_unique(ordered, ["n"], ["k"], 20, by, False))
    assert state.kept.keys["values"].count < 1_500


def test_where_keeps_the_rows_for_which_it_holds_and_a_null_does_not() -> None:
    rows = sample(100, seed=1)
    found = run(compiled({"where": "x > 0 OR s = 'a'"}), rows, Cuts(3, seed=1))
    wanted = [row for row in rows if (row["x"] is not None and row["x"] > 0) or row["s"] == "a"]
    assert as_bag(found) == as_bag(wanted)


def test_rows_below_the_watermark_are_late_and_counted_and_rows_without_time_or_key_too() -> None:
    operator = compiled({"modify": {"function": "adiff", "attributes": ["n"], "partition_by": "k"}})
    state = begin(operator)
    row = {"ts": 5, "k": "a", "g": 0, "x": 0.0, "n": 1, "s": ""}
    step(operator, state, table_of(operator, [row]), 10)
    more = [row | {"ts": 9}, row | {"ts": None}, row | {"ts": 11, "k": None}]
    step(operator, state, table_of(operator, more), 20)
    assert state.buffer.counts == {"late": 1, "null_time": 1, "null_key": 1}
    assert state.buffer.late.num_rows == 1


def test_in_order_of_arrival_rows_are_taken_as_they_come_and_time_never_goes_back() -> None:
    query = planned({"Q": {"from": "S", "modify": {"function": "adiff", "attributes": ["n"]}}})["Q"]
    operator = compile_operator(query, arrival=True)
    rows = [{"ts": at, "k": "a", "g": 0, "x": 0.0, "n": n, "s": ""} for at, n in ((5, 1), (3, 4), (9, 2))]
    found = step(operator, begin(operator), table_of(operator, rows), 0)
    assert found.column("n").to_pylist() == [3, -2]
    assert found.column("ts").cast(pa.int64()).to_pylist() == [5, 9]


def test_long_and_short_texts_encoded_or_not_are_the_same_keys() -> None:
    operator = compiled({"first_unique": "s"})
    texts = [
        "",
        "a",
        "seven77",
        "eight888",
        "seven7",
        "é",
        "a text that is long",
        "eight889",
        "a\0",
        "eight888",
        None,
        None,
    ]
    rows = [{"ts": at, "k": "a", "g": 0, "x": 0.0, "n": at, "s": s} for at, s in enumerate(texts * 3)]
    table = table_of(operator, rows)
    place = table.column_names.index("s")
    encoded = table.set_column(place, "s", table.column("s").combine_chunks().dictionary_encode())
    for batches in ([table], [encoded], [table.slice(0, 7), encoded.slice(7)], [encoded.slice(3, 4), table.slice(7)]):
        state, found, wanted = begin(operator), [], dict[str | None, int]()
        for batch in batches:
            found += step(operator, state, batch, 100).column("n").to_pylist()
            state.buffer.watermark = 0
            for text, number in zip(batch.column("s").to_pylist(), batch.column("n").to_pylist(), strict=True):
                wanted.setdefault(text, number)
        assert found == list(wanted.values())


def test_a_column_that_no_operator_carries_is_told() -> None:
    queries = {
        "Raw": {"sql": "SELECT ts, from_json(s, 'a int') AS code FROM S"},
        "Q": {"from": "Raw", "where": "ts IS NOT NULL"},
    }
    way = "give plain columns, or cast it, in SQL"
    with pytest.raises(EStreamError) as told:
        compile_operator(planned(queries)["Q"])
    assert str(told.value) == (
        f"query 'Q' reads column 'code' of 'Raw', which is of a type that only Spark can tell; {way}"
    )
    with pytest.raises(EStreamError) as told:
        compiled({"where": "ts IS NOT NULL"}, {"ts": "timestamp", "pair": "struct<a:bigint>"})
    assert str(told.value) == f"query 'Q' reads column 'pair' of 'S', which is struct<a:bigint>; {way}"
