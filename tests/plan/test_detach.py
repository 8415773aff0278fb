"""Events that key the same rows otherwise share no nodes, and detect what the contract asks."""

from __future__ import annotations

import random
from typing import Any

import pytest

from estream.conformance import found_by, same
from estream.testing import WHOLE
from tests.plan.small import planned
from tests.reference.detection import detect

BOTH = {
    "X": {"when": "A ; B", "partition_by": {"A": "k", "B": "k"}},
    "Y": {"when": "A ; B", "partition_by": {"A": "k", "B": "v"}},
}


def test_what_two_partitionings_share_is_there_for_each() -> None:
    nodes = planned(BOTH).plan.nodes
    assert [(node.group, node.key) for node in nodes if node.source == "A"] == [(0, ("k",)), (1, ("k",))]
    assert len({node.signature for node in nodes}) == len(nodes) == 6


def test_an_event_keeps_its_state_when_another_with_other_keys_comes_after_it() -> None:
    assert planned({"X": BOTH["X"]}).signatures.items() <= {
        (node.text, node.signature) for node in planned(BOTH).plan.nodes
    }


def test_events_that_agree_with_the_first_or_with_the_second_are_with_it() -> None:
    found = planned({**BOTH, "Z": {"when": "A and B", "partition_by": "k"}})
    assert found.node("A and B").group == 0


def test_an_event_relayed_by_two_keys_beside_a_shared_leaf_has_a_group_for_each() -> None:
    found = planned(
        {
            "X": {"when": "C ; D"},
            "Y": {"when": "X ; A", "partition_by": {"X": "k", "A": "k"}},
            "Z": {"when": "X ; A", "partition_by": {"X": "v", "A": "k"}},
        }
    )
    relays = [node for node in found.plan.nodes if node.operator == "relay"]
    assert sorted(node.key for node in relays) == [("k",), ("v",)]
    assert len({node.group for node in relays}) == 2


def event(when: str, context: str, partition_by: Any) -> dict[str, Any]:
    return {
        "when": when,
        "context": context,
        "semantics": "interval",
        "within_us": None,
        "mask": None,
        "partition_by": partition_by,
    }


def rows(seed: int) -> list[dict[str, Any]]:
    """Two rows at each second, with keys of which some agree."""
    pick = random.Random(seed)
    return [
        {
            "event": pick.choice("ABC"),
            "time": number // 2 * 1_000_000,
            "id": number,
            "attrs": {"k": pick.randint(1, 2), "v": pick.randint(1, 2)},
        }
        for number in range(2, 60)
    ]


@pytest.mark.parametrize("context", ["unrestricted", "recent", "chronicle", "continuous", "cumulative"])
def test_mixed_keys_detect_what_the_reference_does(context: str) -> None:
    events = {
        "X1": event("A ; C", "chronicle", {"A": ["v"], "C": ["k"]}),
        "X2": event("A and B", "continuous", {"A": ["v"], "B": ["v"]}),
        "E1": event("X1 ; A", context, ["k"]),
        "E2": event("X2 ; (X1 or B)", context, {"A": ["v"], "B": ["k"], "C": ["k"], "X1": ["k"], "X2": ["v"]}),
    }
    observed = list(events)
    for seed in range(3):
        vector = {"name": "mixed", "kind": "event", "events": events, "observe": observed, "input": rows(seed)}
        expected = detect(events, vector["input"], observed)
        assert {one["event"] for one in expected} == set(observed)
        assert same(found_by(vector, WHOLE), expected)
