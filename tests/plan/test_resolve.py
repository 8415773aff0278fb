"""What is detected: everything that somebody listens to, and nothing else."""

from __future__ import annotations

from estream.plan.model import Subscription
from tests.plan.small import Planned, planned, rule

EVENTS = {"X": {"when": "A ; B"}, "Y": {"when": "X or C"}, "Z": {"when": "C ; D"}}


def heard(found: Planned) -> list[tuple[str, str | None, str | None]]:
    return [(each.event, each.context, each.publish) for each in found.plan.subscriptions]


def test_without_rules_every_event_that_detects_something_is_listened_to() -> None:
    assert sorted(heard(planned(EVENTS))) == [("X", None, None), ("Y", None, None), ("Z", None, None)]


def test_where_no_event_is_made_of_others_the_primitive_ones_are_listened_to() -> None:
    assert heard(planned({})) == [(name, None, None) for name in "ABCD"]


def test_with_rules_their_events_are_listened_to_and_what_they_are_made_of_is_there() -> None:
    found = planned(EVENTS, {"R": rule("Y")})
    assert heard(found) == [("Y", None, None)]
    assert [event for event, _ in found.plan.events] == ["X", "Y"]
    assert "C ; D" not in found.signatures


def test_a_published_event_is_listened_to() -> None:
    events = {**EVENTS, "Z": {"when": "C ; D", "publish": "alarms"}}
    assert heard(planned(events, {"R": rule("X")})) == [("X", None, None), ("Z", None, "alarms")]


def test_an_observed_event_is_listened_to_once() -> None:
    assert heard(planned(EVENTS, {"R": rule("X")}, observe=["X", "Z"])) == [("X", None, None), ("Z", None, None)]


def test_a_primitive_event_can_be_listened_to() -> None:
    found = planned({}, {"R": rule("A")})
    assert found.plan.subscriptions == (Subscription("A", found.node("A").number),)


def test_a_rule_may_name_another_context_then_the_event_is_also_detected_in_that_context() -> None:
    found = planned(
        {"X": {"when": "A ; B", "context": "chronicle", "within": "1 h"}},
        {"R": rule("X"), "Q": rule("X", context="continuous"), "P": rule("X", context="continuous")},
    )
    assert [(each.event, each.context) for each in found.plan.subscriptions] == [("X", None), ("X", "continuous")]
    assert [found.plan.nodes[each.node].context for each in found.plan.subscriptions] == ["chronicle", "continuous"]
    assert [event for event, _ in found.plan.events] == ["X"]


def test_a_context_asked_for_by_a_rule_does_not_reach_named_events() -> None:
    events = {"X": {"when": "A ; B"}, "Y": {"when": "X ; C", "within": "1 h"}}
    found = planned(events, {"R": rule("Y", context="chronicle")})
    assert (found.node("X ; C").context, found.node("A ; B").context) == ("chronicle", "recent")


def test_a_name_alone_is_an_or_with_one_operand() -> None:
    found = planned({"X": {"when": "A"}})
    assert [(node.operator, node.operands) for node in found.plan.nodes] == [("leaf", ()), ("or", (0,))]
