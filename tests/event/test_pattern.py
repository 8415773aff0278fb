"""Patterns over one stream read like section 6 of the contract."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estream.errors import EStreamError
from estream.testing import Cuts, Row, match
from tests.reference.patterns import match as reference

SECOND = 1_000_000
MOVES = {"up": "v > last(v)", "down": "v < last(v)", "big": "v >= 7", "small": "v < 3"}


def rows(*values: Any, key: Any = 1) -> list[Row]:
    """A row a second, with ids from 1: `v` is the value, `k` the key."""
    return [Row("A", number * SECOND, number, {"k": key, "v": value}) for number, value in enumerate(values, 1)]


def ids(pattern: str, given: list[Row], **options: Any) -> list[list[int]]:
    """The rows of each match; of the predicates those are defined that the pattern names."""
    define = {name: text for name, text in MOVES.items() if name in re.findall(r"[a-z]+", pattern)}
    return [list(one.rows) for one in match(pattern, define=define, rows=given, **options)]


def test_a_match_is_reported_at_the_first_row_that_completes_it() -> None:
    assert ids(". up+", rows(1, 2, 3)) == [[1, 2]]


def test_the_longest_of_several_is_reported_and_the_search_starts_over() -> None:
    assert ids("big+ small", rows(5, 8, 9, 1, 8, 2)) == [[2, 3, 4], [5, 6]]


def test_the_row_that_ends_a_match_does_not_begin_the_next() -> None:
    assert ids(". up", rows(1, 2, 3, 4)) == [[1, 2], [3, 4]]


def test_overlapping_matches_are_each_reported_once_for_every_first_row() -> None:
    assert ids(". up", rows(1, 2, 3, 4), skip="overlap") == [[1, 2], [2, 3], [3, 4]]
    assert ids("big+ small", rows(8, 9, 1), skip="overlap") == [[1, 2, 3], [2, 3]]


def test_a_row_that_satisfies_nothing_ends_the_partial_match() -> None:
    assert ids("big up small", rows(8, 9, 5, 1)) == []


def test_negated_is_every_row_for_which_the_predicate_does_not_hold_also_where_it_is_null() -> None:
    assert ids("big !up big", rows(8, 4, 9, 5, None, 8)) == [[1, 2, 3]]
    assert ids("big !up", rows(8, None)) == [[1, 2]]


def test_repetitions_have_bounds() -> None:
    assert ids("big{2} small", rows(8, 1, 8, 8, 1)) == [[3, 4, 5]]
    assert ids("big{2,3} small", rows(8, 8, 8, 8, 1)) == [[2, 3, 4, 5]]
    assert ids("big{3,} small", rows(8, 8, 1, 8, 8, 8, 8, 1)) == [[4, 5, 6, 7, 8]]


def test_a_match_takes_no_longer_than_within() -> None:
    assert ids("big .* small", rows(8, 5, 8, 5, 1), within="2 s") == [[3, 4, 5]]
    assert ids("big .* small", rows(8, 5, 8, 5, 1), within="4 s") == [[1, 2, 3, 4, 5]]


def test_a_repetition_of_more_states_than_a_word_has_bits() -> None:
    given = rows(*[8] * 100, 1)
    assert ids("big{70} small", given) == [list(range(31, 102))]
    assert ids("big{0,200} small", given) == [list(range(1, 102))]
    assert ids("(big{3} .){20} small", given) == [list(range(21, 102))]


def test_rows_are_a_set_taken_by_time_and_id() -> None:
    given = [*rows(8, 1), Row("A", SECOND, 1, {"k": 1, "v": 8}), Row("A", SECOND, 0, {"k": 1, "v": 9})]
    assert ids("big big small", given) == [[0, 1, 2]]
    assert ids("big small", [Row("A", SECOND, 2, {"v": 1}), Row("A", SECOND, 1, {"v": 8})]) == [[1, 2]]


def test_partitions_do_not_meet_and_a_null_key_is_in_none() -> None:
    given = [
        Row("A", number * SECOND, number, {"k": key, "v": value})
        for number, (key, value) in enumerate([("x", 8), ("y", 9), (None, 8), ("x", 1), (None, 1), ("y", 2)], 1)
    ]
    assert ids("big small", given, partition_by=["k"]) == [[1, 4], [2, 6]]
    assert ids("big small", given, partition_by=["k", "K"]) == [[1, 4], [2, 6]]
    assert ids("big small", given) == [[3, 4]]


def test_aggregates_of_the_output_see_the_whole_match_and_names_its_last_row() -> None:
    output = {
        "n": "count()",
        "some": "count(v)",
        "first": "first(v)",
        "last": "v",
        "least": "min(v)",
        "most": "max(v)",
        "total": "sum(v)",
        "mean": "avg(v)",
        "change": "delta(v)",
        "all": "collect(v * 2)",
        "took": "delta(ts)",
    }
    define = {"low": "v < 3", "big": "v >= 7"}
    (found,) = match("low .{3} big", define=define, rows=rows(2, None, 1, 4, 9), output=output)
    assert {**found.attributes, "took": found.attributes["took"].total_seconds()} == {
        "n": 5,
        "some": 4,
        "first": 2,
        "last": 9,
        "least": 1,
        "most": 9,
        "total": 16,
        "mean": 4.0,
        "change": 7,
        "all": [4, None, 2, 8, 18],
        "took": 4.0,
    }


def test_text_is_compared_by_value_and_its_functions_are_asked_of_the_row() -> None:
    given = [Row("A", n * SECOND, n, {"tag": tag}) for n, tag in enumerate(["Red", "red", "RED", "blue"], 1)]
    define = {"same": "lower(tag) = first(lower(tag))", "other": "tag LIKE 'b%' AND tag <> 'black'"}
    found = match(". same+ other", define=define, rows=given, output={"tag": "first(tag)", "tags": "collect(tag)"})
    assert [(one.rows, one.attributes) for one in found] == [
        ((1, 2, 3, 4), {"tag": "Red", "tags": ["Red", "red", "RED", "blue"]})
    ]


def test_ids_tell_matches_apart_and_do_not_depend_on_batches() -> None:
    given = rows(1, 2, 3, 4, 5, 6)
    define = {"up": "v > last(v)"}
    whole = match(". up", define=define, rows=given)
    assert len({one.id for one in whole}) == 3
    assert match(". up", define=define, rows=given, cuts=Cuts(count=5, seed=1)) == whole


def test_mistakes_are_told_before_anything_runs() -> None:
    with pytest.raises(EStreamError, match="'up' can begin a match, where no row is matched yet"):
        ids("up", rows(1))
    with pytest.raises(EStreamError, match=r"text can be compared with =, <> and IN only"):
        match(". more", define={"more": "k > last(k)"}, rows=rows(1, key="x"))


CASES = (
    (". up+ down", "past_last", None),
    (". up+ down", "overlap", None),
    ("big{1,2} !up small", "past_last", None),
    ("(big | small up)+ down", "overlap", 3),
    (". (up down){2}", "past_last", 3),
    ("!big+ big", "past_last", None),
    (". near* far", "past_last", None),
    (". near* far", "overlap", 3),
    (". within{1,4} short", "past_last", None),
    (". !peak{2,} peak", "overlap", None),
    ("small rare light*", "past_last", None),
    (". (up | rare)+ low", "past_last", 3),
)
"""Pattern, skip, within; few, because each is compiled."""
DEFINE = {
    **MOVES,
    "near": "delta(v) <= 2",
    "far": "v > avg(v) + 2",
    "within": "count() < 4",
    "short": "sum(v) + v > 9",
    "peak": "v > max(v)",
    "rare": "v IS NOT NULL OR min(v) = 1",
    "light": "count(v) > 1",
    "low": "v < min(v)",
}
OUTPUT = {"n": "count()", "s": "sum(v)", "a": "avg(v)", "w": "max(v) - min(v)", "f": "first(v)", "c": "collect(v)"}


@given(
    st.sampled_from(CASES),
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([1, 2, None]), st.none() | st.integers(0, 9)),
        min_size=1,
        max_size=30,
    ),
    st.builds(Cuts, st.integers(1, 4), st.one_of(st.none(), st.integers(0, 9))),
)
@settings(max_examples=150)
def test_the_same_as_following_every_way(
    case: tuple[str, str, int | None], values: list[tuple[int, int | None, int | None]], cuts: Cuts
) -> None:
    pattern, skip, within = case
    define = {name: text for name, text in DEFINE.items() if name in re.findall(r"[a-z]+", pattern)}
    times = list(accumulate(gap for gap, _, _ in values))
    vector = {
        "stream": "A",
        "pattern": pattern,
        "define": define,
        "output": OUTPUT,
        "partition_by": ["k"],
        "skip": skip,
        "within_us": within,
        "input": [
            {"event": "A", "time": times[at], "id": at * 7 % 31, "attrs": {"k": key, "v": value}}
            for at, (_, key, value) in enumerate(values)
        ],
    }
    options = {"within": f"{within} us"} if within is not None else {}
    given = [Row("A", one["time"], one["id"], one["attrs"]) for one in vector["input"]]
    found = match(
        pattern, define=define, rows=given, output=OUTPUT, partition_by=["k"], skip=skip, cuts=cuts, **options
    )
    expected = [(one["start"], one["end"], tuple(one["ids"]), approximately(one["attrs"])) for one in reference(vector)]
    assert [(one.start, one.end, one.rows, dict(one.attributes)) for one in found] == expected


def approximately(attributes: dict[str, Any]) -> dict[str, Any]:
    return {
        name: pytest.approx(value, abs=1e-9) if isinstance(value, float) else value
        for name, value in attributes.items()
    }
