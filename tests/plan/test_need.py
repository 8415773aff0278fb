"""Of every row only the columns travel that somebody asks for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from estream.plan.model import Temporal
from tests.plan.small import planned, rule

ALL = ("ts", "n", "k", "v", "w", "name")
EVENT = {"when": "A ; B"}


def needed(event: Mapping[str, object], **settings: object) -> dict[str, tuple[str, ...]]:
    """Leaf to columns, where one rule listens to the event; every leaf needs its id, n."""
    found = planned({"E": event}, {"R": rule("E", **settings)})
    assert found.errors == []
    return {leaf.name: leaf.needed for leaf in found.plan.leaves}


def test_a_rule_that_asks_for_nothing_needs_the_ids_only() -> None:
    assert needed(EVENT) == {"A": ("n",), "B": ("n",)}


def test_keys_and_masks_of_the_graph_are_needed() -> None:
    assert needed({**EVENT, "partition_by": "k", "mask": "A.v < B.w"}) == {"A": ("n", "k", "v"), "B": ("n", "k", "w")}


def test_conditions_are_needed() -> None:
    assert needed(EVENT, condition="A.name = B.name and count(A) > 0") == {"A": ("n", "name"), "B": ("n", "name")}


def test_the_mask_of_a_primitive_event_is_asked_before_and_needs_nothing() -> None:
    found = planned({"A": {"on": "S", "id": ["n"], "mask": "v > 1"}, "E": EVENT}, {"R": rule("E")})
    assert found.plan.leaves[0].needed == ("n",)


@pytest.mark.parametrize(
    "action",
    [
        {"log": "{A.v} then {B.w}"},
        {"email": {"to": "x@example.org", "subject": "{A.v}", "body": "{B.w}"}},
        {"webhook": {"url": "https://example.org/{A.v}", "body": "{B.w}"}},
        {"sql": {"url": "sqlite://", "table": "t", "values": {"x": "{A.v}", "y": "{B.w}"}}},
    ],
)
def test_the_templates_of_an_action_are_needed(action: Mapping[str, object]) -> None:
    assert needed(EVENT, actions=[action]) == {"A": ("n", "v"), "B": ("n", "w")}


def test_what_a_raised_event_is_made_of_is_needed() -> None:
    action = {"raise": {"event": "R", "attributes": {"x": "A.v + 1"}}}
    found = planned({"R": {"raised": {"x": "int"}}, "E": EVENT}, {"Q": rule("E", actions=[action])})
    assert {leaf.name: leaf.needed for leaf in found.plan.leaves} == {"A": ("n", "v"), "B": ("n",)}


@pytest.mark.parametrize(
    "settings",
    [
        {"actions": [{"python": "rules.traffic:notify_police"}]},
        {"actions": [{"file": {"path": "out.jsonl"}}]},
        {"actions": [{"publish": "channel"}]},
        {"actions": [{"webhook": {"url": "https://example.org"}}]},
        {"condition": {"python": "rules.traffic:same_segment"}},
    ],
)
def test_who_is_handed_the_whole_detection_needs_every_column(settings: Mapping[str, object]) -> None:
    assert needed(EVENT, **settings) == {"A": ALL, "B": ALL}


def test_what_is_never_a_constituent_needs_no_more_than_the_graph_asks() -> None:
    everything = [{"python": "rules.traffic:notify_police"}]
    assert needed({"when": "not(B)[A, C]"}, actions=everything) == {"A": ALL, "B": ("n",), "C": ALL}


def test_published_and_observed_events_need_every_column() -> None:
    assert needed({**EVENT, "publish": "channel"}) == {"A": ALL, "B": ALL}
    found = planned({"E": EVENT}, {"R": rule("E")}, observe=["E"])
    assert {leaf.needed for leaf in found.plan.leaves} == {ALL}


def test_events_that_nobody_listens_to_are_not_there() -> None:
    found = planned({"E": EVENT, "F": {"when": "C ; T"}}, {"R": rule("E")})
    assert ([leaf.name for leaf in found.plan.leaves], found.plan.temporals) == (["A", "B"], ())


def test_a_raised_event_is_known_by_all_its_attributes_and_has_the_time_of_its_channel() -> None:
    (leaf,) = planned({"R": {"raised": {"x": "int"}}}, {"Q": rule("R")}).plan.leaves
    assert (leaf.query, leaf.raised, leaf.id, leaf.time) == ("R", True, (), "_time")


def test_temporal_events_are_in_microseconds() -> None:
    events = {
        "At": {"at": "2026-01-01T00:00:00+01:00"},
        "Every": {"every": "90 s"},
        "Cron": {"cron": "0 9 * * MON-FRI", "timezone": "Europe/Zurich"},
    }
    found = planned(events, {name: rule(name) for name in events})
    assert set(found.plan.temporals) == {
        Temporal("At", at=1_767_222_000_000_000),
        Temporal("Every", every=90_000_000),
        Temporal("Cron", cron="0 9 * * MON-FRI", timezone="Europe/Zurich"),
    }
