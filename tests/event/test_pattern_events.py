"""Matches are occurrences like any other: rules and composite events use them, in every partitioning."""

from __future__ import annotations

from typing import Any

import pytest

from estream.testing import Cuts, Row, run

SECOND = 1_000_000
RISE = {
    "on": "Rows",
    "id": ["row_id"],
    "partition_by": ["k"],
    "within": "1 min",
    "pattern": "low up+ high",
    "define": {"low": "v < 3", "up": "v > last(v) AND v < 7", "high": "v >= 7"},
    "output": {"k": "k", "top": "max(v)", "steps": "count()", "all": "collect(v)", "id": "first(row_id)"},
}
LATE_STEPS = [(1, 1), (5, 4), (3, 5), (5, 8)]
"""Seconds and values; the third row comes at the time the second one has reached."""
CUTS = [Cuts(), Cuts(count=4), Cuts(count=6, seed=2)]


def rows(text: str) -> list[Row]:
    """`x1 y5` is a row of key x with the value 1 and one of y with the value 5, a second apart."""
    return [
        Row("A", number * SECOND, number, {"k": word[0], "v": int(word[1:])})
        for number, word in enumerate(text.split(), 1)
    ]


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_a_match_is_detected_with_its_start_and_its_output(cuts: Cuts) -> None:
    found = run({"M": RISE}, rows("x1 y1 x4 y9 x5 x8 x1"), ["M"], cuts=cuts)
    assert [(one.start, one.end) for one in found] == [(1 * SECOND, 6 * SECOND)]
    (match,) = found[0].constituents
    assert (match.event, match.time) == ("M", 6 * SECOND)
    assert {name: match.attributes[name] for name in ("k", "top", "steps", "all")} == {
        "k": "x",
        "top": 8,
        "steps": 4,
        "all": [1, 4, 5, 8],
    }


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_a_composite_event_combines_matches_by_their_output(cuts: Cuts) -> None:
    events: dict[str, Any] = {
        "M": RISE,
        "E": {"when": "M ; A", "context": "chronicle", "partition_by": "k", "mask": "A.v = M.top"},
    }
    found = run(events, rows("x1 y1 x4 y4 x8 y9 y8 x9 x8 y9"), ["E"], cuts=cuts)
    assert [(one.start, one.end, [part.event for part in one.constituents]) for one in found] == [
        (1 * SECOND, 9 * SECOND, ["M", "A"]),
        (2 * SECOND, 10 * SECOND, ["M", "A"]),
    ]


def test_a_match_is_before_what_begins_after_its_end() -> None:
    events: dict[str, Any] = {"M": RISE, "E": {"when": "A ; M", "context": "unrestricted", "partition_by": "k"}}
    found = run(events, rows("x9 x1 x4 x8"), ["E"])
    assert [[part.id for part in one.constituents][:1] for one in found] == [[1]]


def test_two_patterns_over_one_stream() -> None:
    fall = {**RISE, "pattern": "high down", "define": {"high": "v >= 7", "down": "v < last(v)"}, "output": {"k": "k"}}
    events: dict[str, Any] = {"M": RISE, "N": fall, "E": {"when": "M ; N", "partition_by": "k"}}
    found = run(events, rows("x1 x4 x8 x9 x2"), ["E", "N"])
    assert [(one.event, one.start // SECOND, one.end // SECOND) for one in found] == [("E", 1, 5), ("N", 4, 5)]


def test_in_order_of_arrival_rows_are_taken_as_they_come_and_time_does_not_go_back() -> None:
    given = [Row("A", second * SECOND, second, {"k": "x", "v": v}) for second, v in [(5, 1), (3, 4), (6, 8), (4, 9)]]
    assert run({"M": RISE}, given, ["M"]) == []
    for cuts in (Cuts(), Cuts(count=3)):
        (found,) = run({"M": RISE}, given, ["M"], order="arrival", cuts=cuts)
        assert (found.start, found.end) == (5 * SECOND, 6 * SECOND)
        assert found.constituents[0].attributes["all"] == [1, 4, 8]


def test_the_ids_of_the_rows_of_a_match_are_collected_on_request() -> None:
    asked = {**RISE, "output": {"k": "k", "rows": "collect(row_id)"}}
    (found,) = run({"M": asked}, rows("x1 y1 x4 y9 x5 x8 x1"), ["M"], cuts=Cuts(count=4))
    assert found.constituents[0].attributes["rows"] == [1, 3, 5, 6]


def test_in_order_of_arrival_a_row_of_the_time_reached_still_completes_a_match() -> None:
    given = [Row("A", second * SECOND, number, {"k": "x", "v": v}) for number, (second, v) in enumerate(LATE_STEPS)]
    for cuts in (Cuts(), Cuts(count=20)):
        found = run({"M": {**RISE, "within": "4 s"}}, given, ["M"], order="arrival", cuts=cuts)
        assert [(one.start, one.end) for one in found] == [(1 * SECOND, 5 * SECOND)]
