"""How much a node keeps for one key, and a warning where nothing bounds it."""

from __future__ import annotations

import pytest

from estream.plan.bound import state_bound
from tests.plan.small import one, planned

CONTEXTS = ("unrestricted", "recent", "chronicle", "continuous", "cumulative")


@pytest.mark.parametrize("when", ["A ; B", "A and B", "not(B)[A, C]", "A(A, B, C)", "P(A, 1 s, C)"])
def test_what_waits_is_one_in_recent_and_any_number_in_the_other_contexts(when: str) -> None:
    bounds = {context: one(when, context=context).node(when).bound for context in CONTEXTS}
    assert bounds == {context: "bounded" if context == "recent" else "unbounded" for context in CONTEXTS}
    assert one(when, context="chronicle", within="1 h").node(when).bound == "bounded by within"


@pytest.mark.parametrize("when", ["A*(A, B, C)", "P*(A, 1 s, C)"])
def test_a_window_that_records_grows_in_every_context(when: str) -> None:
    assert {one(when, context=context).node(when).bound for context in CONTEXTS} == {"unbounded"}
    assert one(when, within="1 h").node(when).bound == "bounded by within"


@pytest.mark.parametrize("when", ["A or B", "times(3, A)", "A + 5 s", "absent(A, B, 5 s)"])
@pytest.mark.parametrize("context", CONTEXTS)
def test_what_counts_or_waits_for_a_time_is_bounded(when: str, context: str) -> None:
    assert one(when, context=context).node(when).bound == "bounded"


def test_sources_and_relays_keep_nothing() -> None:
    for operator in ("leaf", "temporal", "relay"):
        assert state_bound(operator, "unrestricted", None) == "bounded"


@pytest.mark.parametrize("pattern", ["up down", "up{2,4} down", "up? (up | down)"])
def test_a_pattern_of_limited_length_is_bounded(pattern: str) -> None:
    assert pattern_bound(pattern) == "bounded"


def test_a_pattern_that_may_go_on_is_bounded_by_within_only() -> None:
    assert pattern_bound("up+ down") == "unbounded"
    assert pattern_bound("up+ down", within="1 h") == "bounded by within"


def pattern_bound(pattern: str, **settings: object) -> str:
    define = {"up": "v > 1", "down": "v < 1"}
    event = {"on": "S", "pattern": pattern, "define": define, "output": {"n": "n"}, **settings}
    return planned({"M": event}).node("M").bound


def test_one_warning_for_an_event_at_the_first_operator_that_grows() -> None:
    assert one("times(2, A) or (B ; C)", context="chronicle").warnings == [
        ("B ; C", "event 'E': ';' in context chronicle keeps more and more; nothing bounds its state")
    ]


def test_a_context_asked_for_by_a_rule_is_warned_of_too() -> None:
    rules = {"R": {"on": "E", "context": "continuous", "actions": [{"log": "seen"}]}}
    ((_, message),) = planned({"E": {"when": "A ; B"}}, rules).warnings
    assert "in context continuous" in message


def test_bounded_events_have_no_warning() -> None:
    assert one("A ; B").problems == []
    assert one("A ; B", context="chronicle", within="1 h").problems == []


def test_timers_are_the_nodes_that_act_when_a_time_is_due() -> None:
    found = one("(A + 1 s) or absent(A, B, 1 s) or P(A, 1 s, B) or P*(A, 1 s, B) or (C ; T)", within="1 h")
    timed = {found.plan.nodes[number].text for number in found.plan.timers}
    assert timed == {"A + 1 s", "absent(A, B, 1 s)", "P(A, 1 s, B)", "P*(A, 1 s, B)", "T"}
