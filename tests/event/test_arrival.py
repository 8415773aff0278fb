"""`order: arrival`: each row is an epoch of its own, at its time or the last one seen, after the timers due by then."""

from __future__ import annotations

from typing import Any

import pytest

from estream.testing import WHOLE, Cuts, Row, run

SECOND = 1_000_000


def found(events: dict[str, Any], text: str, order: Any, cuts: Cuts) -> list[str]:
    """The detections of E over rows such as `A5`, in the order they come; ids count from 1."""
    rows = [Row(word[0], int(word[1:]) * SECOND, number, {"k": 1}) for number, word in enumerate(text.split(), 1)]
    detected = run(events, rows, ["E"], order=order, cuts=cuts)
    return [" ".join(f"{part.event}{part.id}" for part in one.constituents) for one in detected]


@pytest.mark.parametrize("cuts", [WHOLE, Cuts(3)], ids=str)
@pytest.mark.parametrize(
    ("when", "rows", "in_time", "as_they_come"),
    [
        # A late row is at the last time seen, and so is not before a row of that time.
        ("A ; B", "B5 A3 B6", ["A2 B1"], ["A2 B3"]),
        ("A ; B", "A5 B3", [], []),
        # Rows of one time act one after the other: the first is kept, the second finds it.
        ("times(2, A or B)", "B5 A5 C6", ["B1 A2"], ["B1 A2"]),
        ("times(2, A or B)", "A5 B4 C6", ["B2 A1"], ["A1 B2"]),
        # An n keeps out the initiators of its epoch, and drops those that ended at its time.
        ("not(B)[A, C]", "B5 A5 C6", [], ["A2 C3"]),
        ("not(B)[A, C]", "A5 B5 C6", [], []),
        # A timer acts before the row that comes at its time: here the n is too late for the deadline.
        ("absent(A, B, 2 s)", "A1 B3 C9", [], ["A1"]),
        ("absent(A, B, 2 s)", "A1 B2 C9", [], []),
    ],
)
def test_rows_act_as_they_come(when: str, rows: str, in_time: list[str], as_they_come: list[str], cuts: Cuts) -> None:
    events = {"E": {"when": when, "context": "chronicle"}}
    assert found(events, rows, "event_time", cuts) == in_time
    assert found(events, rows, "arrival", cuts) == as_they_come


@pytest.mark.parametrize("cuts", [WHOLE, Cuts(3)], ids=str)
def test_what_a_row_completes_in_other_partitions_is_of_its_epoch(cuts: Cuts) -> None:
    events = {"X": {"when": "B ; A", "partition_by": ["k"], "context": "chronicle"}, "E": {"when": "not(A)[X, C]"}}
    assert found(events, "B1 A5 C6", "arrival", cuts) == []
    events["E"] = {"when": "times(2, X or A)"}
    assert found(events, "B1 A5 A4", "arrival", cuts) == ["B1 A2 A2", "A2 A3"]
