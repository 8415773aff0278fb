"""Nodes that are partitioned alike form a group, which only relays cross."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.plan.small import planned


def test_events_that_share_nothing_are_groups_of_their_own() -> None:
    found = planned({"X": {"when": "A ; B"}, "Y": {"when": "C ; D"}})
    assert found.node("A ; B").group != found.node("C ; D").group
    assert {node.stage for node in found.plan.nodes} == {0}


def test_events_that_share_a_leaf_are_one_group() -> None:
    found = planned({"X": {"when": "A ; B"}, "Y": {"when": "A ; D"}})
    assert {node.group for node in found.plan.nodes} == {0}


def test_a_relay_belongs_to_the_group_it_feeds_which_is_in_a_later_stage() -> None:
    found = planned({"X": {"when": "A ; B", "partition_by": "k"}, "E": {"when": "X ; C", "partition_by": "v"}})
    (relay,) = [node for node in found.plan.nodes if node.operator == "relay"]
    inner, outer = found.node("A ; B"), found.node("X ; C")
    assert relay.group == outer.group != inner.group
    assert (inner.stage, relay.stage, outer.stage, found.node("C").stage) == (0, 1, 1, 1)


def test_a_group_is_later_than_every_group_it_hears_of() -> None:
    found = planned(
        {
            "X": {"when": "A ; B", "partition_by": "k"},
            "Y": {"when": "X ; C", "partition_by": "v"},
            "Z": {"when": "C ; D", "partition_by": "name"},
            "E": {"when": "Y and Z", "partition_by": "w"},
        }
    )
    assert [found.node(text).stage for text in ("A ; B", "X ; C", "C ; D", "Y and Z")] == [0, 1, 0, 2]


KEYS = st.sampled_from([[], ["k"], ["v"], ["w"]])


@given(KEYS, KEYS, KEYS, KEYS)
def test_only_relays_cross_and_always_to_a_later_stage(x: list[str], y: list[str], z: list[str], e: list[str]) -> None:
    found = planned(
        {
            "X": {"when": "A ; B", "partition_by": x},
            "Y": {"when": "X ; C", "partition_by": y},
            "Z": {"when": "X and D", "partition_by": z},
            "E": {"when": "Y ; Z", "partition_by": e},
        }
    )
    nodes = found.plan.nodes
    for node in nodes:
        for operand in (nodes[number] for number in node.operands):
            assert operand.group == node.group if node.operator != "relay" else operand.stage < node.stage
    for group in {node.group for node in nodes}:
        assert len({node.key for node in nodes if node.group == group and node.operator in ("leaf", "relay")}) == 1


MAPS = st.fixed_dictionaries(dict.fromkeys("ABCD", st.sampled_from(["k", "v"])))


@given(MAPS, MAPS, MAPS)
def test_in_a_group_every_event_has_one_key(x: dict[str, str], y: dict[str, str], e: dict[str, str]) -> None:
    found = planned(
        {
            "X": {"when": "A ; B", "partition_by": {name: x[name] for name in "AB"}},
            "Y": {"when": "X and C", "partition_by": {name: y[name] for name in "ABC"}},
            "E": {"when": "(Y ; X) or (C ; D)", "partition_by": e},
        }
    )
    assert found.errors == []
    nodes = found.plan.nodes
    leaves = {(node.group, node.source, node.key) for node in nodes if node.operator == "leaf"}
    assert len(leaves) == len({(group, event) for group, event, _ in leaves})
    for node in nodes:
        for operand in (nodes[number] for number in node.operands):
            assert operand.group == node.group if node.operator != "relay" else operand.stage < node.stage


def test_a_partitioning_that_would_feed_itself_gets_copies_of_what_it_shares() -> None:
    found = planned(
        {
            "X": {"when": "A ; B", "partition_by": "k"},
            "Y": {"when": "X ; C", "partition_by": "v"},
            "E": {"when": "Y ; X", "partition_by": "k"},
        }
    )
    copies = [node for node in found.plan.nodes if node.text == "A ; B"]
    assert [node.stage for node in copies] == [0, 2]
    assert len({node.signature for node in copies}) == 2
    assert dict(found.plan.events)["X"] == copies[0].number


def test_copies_are_made_of_nothing_that_stands_apart() -> None:
    apart = {"V": {"when": "C ; D", "partition_by": "w"}, "W": {"when": "V or D", "partition_by": "name"}}
    knot = {
        "X": {"when": "A ; B", "partition_by": "k"},
        "Y": {"when": "X ; C", "partition_by": "v"},
        "E": {"when": "Y ; X", "partition_by": "k"},
    }
    before, after = planned(apart), planned({**apart, **knot})
    assert before.signatures.items() <= {(node.text, node.signature) for node in after.plan.nodes}
