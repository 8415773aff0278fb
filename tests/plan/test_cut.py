"""A named event that feeds one with another `partition_by` is partitioned anew, which begins a stage."""

from __future__ import annotations

from tests.plan.small import Planned, planned


def relays(found: Planned) -> list[tuple[str | None, tuple[str, ...], int]]:
    """Event, key and stage of every relay."""
    assert found.errors == []
    return [(node.source, node.key, node.stage) for node in found.plan.nodes if node.operator == "relay"]


def fed(inner: object, outer: object, when: str = "X ; C") -> Planned:
    """E by `outer` over X = A ; B by `inner`."""
    return planned({"X": {"when": "A ; B", "partition_by": inner}, "E": {"when": when, "partition_by": outer}})


def test_an_equal_partition_needs_no_relay() -> None:
    assert relays(fed("k", "k")) == []
    assert relays(fed([], [])) == []


def test_another_partition_is_reached_by_a_relay() -> None:
    assert relays(fed("k", "v")) == [("X", ("v",), 1)]


def test_from_partitions_into_one_and_back() -> None:
    assert relays(fed("k", [])) == [("X", (), 1)]
    assert relays(fed([], "k")) == [("X", ("k",), 1)]


def test_a_primitive_event_is_keyed_where_it_is_used_and_never_relayed() -> None:
    found = planned({"X": {"when": "A ; B", "partition_by": "k"}, "E": {"when": "A ; C", "partition_by": "v"}})
    assert relays(found) == []
    assert sorted(node.key for node in found.plan.nodes if node.source == "A") == [("k",), ("v",)]


def test_the_key_is_that_of_the_last_constituent() -> None:
    found = fed("k", {"A": "k", "B": "v", "C": "v"})
    (relay,) = [node for node in found.plan.nodes if node.operator == "relay"]
    assert relay.keys == (("B", ("v",)),)


def test_with_a_map_the_entry_for_the_composite_goes_first() -> None:
    found = fed("k", {"X": "w", "C": "v"})
    assert relays(found) == [("X", ("w",), 1)]


def test_where_the_last_constituent_may_be_one_of_several_each_has_its_key() -> None:
    found = planned(
        {
            "X": {"when": "A ; (B or C)"},
            "E": {"when": "X ; D", "partition_by": {"A": "k", "B": "v", "C": "w", "D": "k"}},
        }
    )
    (relay,) = [node for node in found.plan.nodes if node.operator == "relay"]
    assert (relay.key, relay.keys) == ((), (("B", ("v",)), ("C", ("w",))))


def test_a_relay_of_a_relayed_event_is_one_stage_later() -> None:
    found = planned(
        {
            "X": {"when": "A ; B", "partition_by": "k"},
            "Y": {"when": "X ; C", "partition_by": "v"},
            "E": {"when": "Y ; D", "partition_by": "w"},
        }
    )
    assert relays(found) == [("X", ("v",), 1), ("Y", ("w",), 2)]


def test_events_used_in_two_partitionings_have_one_relay_for_each() -> None:
    found = planned(
        {
            "X": {"when": "A ; B", "partition_by": "k"},
            "Y": {"when": "X ; C", "partition_by": "v"},
            "Z": {"when": "X ; D", "partition_by": "v"},
            "E": {"when": "X and D", "partition_by": "w"},
        }
    )
    assert sorted(relays(found)) == [("X", ("v",), 1), ("X", ("w",), 1)]


def test_an_event_that_keys_a_leaf_otherwise_is_relayed_though_its_last_constituent_has_the_same_key() -> None:
    found = planned(
        {
            "X": {"when": "A ; C", "partition_by": {"A": "v", "C": "k"}},
            "E": {"when": "X ; A", "partition_by": "k"},
        }
    )
    assert relays(found) == [("X", ("k",), 1)]


def test_of_two_events_that_key_a_leaf_otherwise_one_is_relayed() -> None:
    found = planned(
        {
            "X": {"when": "A ; C", "partition_by": "k"},
            "Y": {"when": "A ; D", "partition_by": {"A": "v", "D": "k"}},
            "E": {"when": "X ; Y", "partition_by": "k"},
        }
    )
    assert relays(found) == [("Y", ("k",), 1)]
