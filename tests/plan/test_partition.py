"""`partition_by`: a list of attributes that all leaves have, or a map from leaf to attributes."""

from __future__ import annotations

import pytest

from tests.plan.small import one, planned

RAISED = {"R": {"raised": {"k": "int", "name": "string"}}, "Q": {"raised": {"key": "bigint"}}}


def keys(when: str, partition_by: object) -> dict[str, tuple[str, ...]]:
    found = planned({**RAISED, "E": {"when": when, "partition_by": partition_by, "within": "1 h"}})
    assert found.errors == []
    return {node.text: node.key for node in found.plan.nodes if node.operator in ("leaf", "temporal")}


def errors(when: str, partition_by: object, **events: dict[str, object]) -> list[tuple[str, str]]:
    return planned({**RAISED, **events, "E": {"when": when, "partition_by": partition_by}}).errors


def test_a_list_is_the_key_of_every_leaf() -> None:
    assert keys("A ; B", ["k", "name"]) == {"A": ("k", "name"), "B": ("k", "name")}


def test_a_name_alone_is_a_list_of_one() -> None:
    assert keys("A ; B", "k") == {"A": ("k",), "B": ("k",)}


def test_a_map_gives_each_leaf_its_own() -> None:
    assert keys("A ; Q", {"A": "k", "Q": "key"}) == {"A": ("k",), "Q": ("key",)}


def test_a_temporal_event_has_no_key() -> None:
    assert keys("A ; T", "k") == {"A": ("k",), "T": ()}


def test_an_attribute_that_a_leaf_lacks() -> None:
    assert errors("A ; R", ["k", "v"]) == [
        ("v", "event 'E': partition_by uses 'v'; event 'R' has k, name"),
    ]


def test_a_map_that_leaves_an_event_out() -> None:
    assert errors("A ; (B or C)", {"A": "k"}) == [("A", "event 'E': partition_by has no attributes for B, C")]


def test_a_map_that_names_what_is_not_in_the_expression() -> None:
    found = planned({"E": {"when": "A ; B", "partition_by": {"A": "k", "B": "k", "C": "k"}}})
    assert found.errors == [("C", "event 'E': partition_by names 'C', which is not in its expression")]


def test_a_map_may_name_a_leaf_inside_a_named_event_that_is_never_a_constituent() -> None:
    events = {"X": {"when": "absent(A, B, 1 min)"}, "E": {"when": "X ; C", "partition_by": dict.fromkeys("ABC", "k")}}
    assert planned(events).errors == []


def test_keys_of_different_lengths() -> None:
    ((marked, message),) = errors("A ; B", {"A": ["k", "v"], "B": "k"})
    assert (marked, message) == ("B", "event 'E': partition_by gives A 2 attributes and B 1 attribute")


def test_keys_of_types_that_never_agree() -> None:
    ((marked, message),) = errors("A ; B", {"A": "k", "B": "name"})
    assert (marked, message) == ("B", "event 'E': partition_by compares A.k (int) with B.name (string)")


def test_an_integer_and_a_fraction_are_not_compared_as_keys() -> None:
    ((_, message),) = errors("A ; G", {"A": "k", "G": "share"}, G={"raised": {"share": "double"}})
    assert message == "event 'E': partition_by compares A.k (int) with G.share (double)"


def test_integers_of_different_sizes_agree() -> None:
    assert errors("A ; Q", {"A": "k", "Q": "key"}) == []


@pytest.mark.parametrize("named", [{"X": "k", "C": "k"}, {"A": "k", "B": "k", "C": "k"}])
def test_a_named_composite_event_has_an_entry_of_its_own_or_its_leaves_have(named: dict[str, str]) -> None:
    found = planned({"X": {"when": "A ; B", "partition_by": "k"}, "E": {"when": "X ; C", "partition_by": named}})
    assert found.errors == []


def test_without_partition_there_are_no_keys() -> None:
    assert all(node.key == () for node in one("A ; B").plan.nodes)


@pytest.mark.parametrize("given", [["K", "Name"], {"A": ["K", "NAME"], "B": ["k", "name"]}])
def test_attributes_are_found_whatever_their_case(given: object) -> None:
    assert keys("A ; B", given) == {"A": ("k", "name"), "B": ("k", "name")}


def test_each_leaf_has_the_key_as_it_declares_it() -> None:
    found = planned({"V": {"raised": {"K": "int"}}, "E": {"when": "A ; V", "partition_by": "k"}})
    assert found.errors == []
    assert (found.node("A").key, found.node("V").key) == (("k",), ("K",))


def test_a_named_event_is_keyed_by_each_of_its_leaves_as_they_declare_it() -> None:
    inner = {"when": "A or V", "partition_by": "k"}
    outer = {"when": "X ; C", "partition_by": {"X": "K", "C": "K"}}
    found = planned({"V": {"raised": {"K": "int"}}, "X": inner, "E": outer})
    assert found.errors == []
    assert [node for node in found.plan.nodes if node.operator == "relay"] == []
