"""Unnamed sub-expressions inherit what the definition gives; a named event inherits nothing."""

from __future__ import annotations

import pytest

from tests.plan.small import one, planned

SETTINGS = {"context": "chronicle", "semantics": "point", "within": "5 min"}


def test_unnamed_parts_inherit_context_semantics_and_within() -> None:
    found = one("(A ; B) and C", **SETTINGS)
    for text in ("A ; B", "A ; B and C"):
        node = found.node(text)
        assert (node.context, node.semantics, node.within) == ("chronicle", "point", 300_000_000)


def test_a_named_event_inherits_nothing() -> None:
    found = planned({"X": {"when": "A ; B"}, "E": {"when": "X and C", **SETTINGS}})
    node = found.node("A ; B")
    assert (node.context, node.semantics, node.within) == ("recent", "interval", None)


@pytest.mark.parametrize("when", ["A + 6 min", "absent(A, B, 6 min)", "P(A, 6 min, B)", "C ; P*(A, 6 min, B)"])
def test_a_timer_longer_than_within_is_an_error(when: str) -> None:
    ((marked, message),) = one(when, within="5 min").errors
    assert marked == when.removeprefix("C ; ")
    assert message.endswith("waits 6 min, longer than within (5 min): it could never be detected")


def test_a_timer_as_long_as_within_is_right() -> None:
    assert one("A + 5 min", within="5 min").problems == []


@pytest.mark.parametrize("when", ["A and A", "(A ; B) and (A ; B)", "C ; (A and  A)"])
def test_both_sides_of_and_the_same_is_an_error(when: str) -> None:
    ((_, message),) = one(when).errors
    assert message == "event 'E': both sides of 'and' are the same expression"


def test_sides_that_differ_in_a_number_are_not_the_same() -> None:
    assert one("times(2, A) and times(3, A)").problems == []


@pytest.mark.parametrize("when", ["T", "A or T", "T ; U", "A*(T, A, U)", "P(T, 1 s, A)", "not(A)[T, U]", "T + 1 s"])
def test_a_partitioned_event_needs_a_leaf_that_is_not_temporal_in_every_detection(when: str) -> None:
    messages = [message for _, message in one(when, partition_by="k").errors]
    assert messages == ["event 'E': partition_by needs an event that is not temporal in every detection"]
    assert one(when, within="2 h").errors == []


@pytest.mark.parametrize("when", ["A ; T", "T and A", "A(T, A, U)", "A*(T, B, A)", "P(A, 1 s, T)", "absent(A, T, 1 s)"])
def test_temporal_events_belong_to_every_partition(when: str) -> None:
    assert one(when, partition_by="k", within="1 h").problems == []


@pytest.mark.parametrize("inner", ["absent(T, A, 1 s)", "not(A)[T, U]", "A or T"])
def test_a_named_event_that_sees_rows_needs_one_in_every_detection_to_have_a_key(inner: str) -> None:
    found = planned({"X": {"when": inner}, "E": {"when": "A ; X", "partition_by": "k"}})
    message = "event 'E': partition_by finds no key in 'X', which can be detected of temporal events alone"
    assert found.errors == [("X", message)]


def test_a_named_event_of_temporal_events_only_belongs_to_every_partition() -> None:
    found = planned({"X": {"when": "T ; U"}, "E": {"when": "A ; X", "partition_by": "k", "within": "1 h"}})
    assert found.problems == []


def test_after_an_error_the_plan_has_no_nodes() -> None:
    assert one("A and A").plan.nodes == ()
