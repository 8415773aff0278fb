"""`--select`: the parts of a plan around a name."""

from __future__ import annotations

import pytest

from estream.errors import EStreamError
from estream.plan.model import Plan
from estream.plan.select import dependencies, select
from tests.plan.small import planned, rule

EVENTS = {"X": {"when": "A ; B"}, "Y": {"when": "X and (C or T)"}, "Z": {"when": "D"}}
RULES = {"OnY": rule("Y"), "OnZ": rule("Z"), "OnA": rule("A")}


@pytest.fixture
def plan() -> Plan:
    return planned(EVENTS, RULES).plan


def names(plan: Plan) -> set[str]:
    parts = (*plan.streams, *plan.queries, *plan.leaves, *plan.temporals, *plan.patterns, *plan.rules)
    return {each.name for each in parts} | {event for event, _ in plan.events}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("X", "X"),
        ("+X", "X A B S"),
        ("X+", "X Y OnY"),
        ("+X+", "X A B S Y OnY"),
        ("A+", "A X Y OnY OnA"),
        ("+OnZ", "OnZ Z D S"),
        ("T+", "T Y OnY"),
        ("S", "S"),
        ("S+", "S A B C D X Y Z OnY OnZ OnA"),
        (" Z ", "Z"),
    ],
)
def test_a_name_what_depends_on_it_and_what_it_needs(plan: Plan, selection: str, expected: str) -> None:
    assert names(select(plan, selection)) == set(expected.split())


def test_nodes_keep_their_numbers(plan: Plan) -> None:
    assert select(plan, "Y").nodes == plan.nodes


def test_an_unknown_name_gets_a_suggestion(plan: Plan) -> None:
    with pytest.raises(EStreamError, match="nothing in the plan is called 'OnX'; did you mean"):
        select(plan, "OnX")


def test_each_part_needs_what_it_names_directly(plan: Plan) -> None:
    assert dependencies(plan)["Y"] == {"X", "C", "T"}
    assert dependencies(plan)["OnY"] == {"Y"}
