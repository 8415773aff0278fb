"""Equal nodes are one, in topological order; state is kept under signatures that only what matters can change."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.spec.event_expression import EventExpression, to_text
from tests.plan.small import Planned, one, planned, rule
from tests.plan.test_place import EXPRESSIONS

BASE = {"when": "A ; B", "context": "chronicle", "within": "5 min", "partition_by": "k", "mask": "A.v = B.v"}


def signature(**changes: object) -> str:
    """That of the top node of the event with some settings changed."""
    found = planned({"E": {name: value for name, value in {**BASE, **changes}.items() if value is not None}})
    assert found.errors == []
    return found.plan.nodes[found.plan.subscriptions[0].node].signature


def test_equal_expressions_of_two_events_are_one_node() -> None:
    found = planned({"X": {"when": "A ; B"}, "Y": {"when": "A ; B"}})
    assert [node.text for node in found.plan.nodes] == ["A", "B", "A ; B"]
    assert [node for _, node in found.plan.events] == [2, 2]


def test_an_equal_part_of_two_expressions_is_one_node() -> None:
    found = planned({"X": {"when": "(A ; B) and C"}, "Y": {"when": "(A ; B) and D"}})
    assert [node.text for node in found.plan.nodes].count("A ; B") == 1


def test_a_named_event_is_the_node_of_the_same_expression() -> None:
    found = planned({"X": {"when": "A ; B"}, "Y": {"when": "X and C"}, "Z": {"when": "(A ; B) and C"}})
    assert len(found.plan.nodes) == 5
    nodes = dict(found.plan.events)
    assert nodes["Y"] == nodes["Z"]


@pytest.mark.parametrize(
    "other",
    [
        {"context": "chronicle"},
        {"within": "1 h"},
        {"semantics": "point"},
        {"partition_by": "k"},
        {"mask": "A.v = B.v"},
    ],
)
def test_what_differs_in_a_setting_is_not_shared(other: dict[str, object]) -> None:
    found = planned({"X": {"when": "A ; B"}, "Y": {"when": "A ; B", **other}})
    assert len({node for _, node in found.plan.events}) == 2


def test_contexts_do_not_matter_to_or() -> None:
    found = planned({"X": {"when": "A or B"}, "Y": {"when": "A or B", "context": "chronicle", "semantics": "point"}})
    assert len({node for _, node in found.plan.events}) == 1


def test_leaves_with_another_key_are_other_nodes() -> None:
    found = planned({"X": {"when": "A ; B", "partition_by": "k"}, "Y": {"when": "A ; B", "partition_by": "v"}})
    assert [node.source for node in found.plan.nodes].count("A") == 2


def test_a_temporal_event_is_one_node_in_each_partitioning() -> None:
    found = planned(
        {
            "X": {"when": "A ; T", "partition_by": "k"},
            "Y": {"when": "B ; T", "partition_by": "k"},
            "Z": {"when": "A ; T", "partition_by": "v"},
        }
    )
    assert [node.source for node in found.plan.nodes].count("T") == 2


@given(st.lists(EXPRESSIONS, min_size=1, max_size=3))
def test_nodes_are_different_and_stand_after_their_operands(expressions: list[EventExpression]) -> None:
    events = {f"E{i}": {"when": to_text(expression)} for i, expression in enumerate(expressions)}
    found = planned({"X": {"when": "C ; D"}, **events})
    nodes = found.plan.nodes
    assert [node.number for node in nodes] == list(range(len(nodes)))
    assert len({node.signature for node in nodes}) == len(nodes)
    assert all(operand < node.number for node in nodes for operand in node.operands)


@pytest.mark.parametrize(
    "changes",
    [
        {"when": "B ; A"},
        {"when": "A ; C", "mask": "A.v = C.v"},
        {"context": "recent"},
        {"within": "6 min"},
        {"within": None},
        {"semantics": "point"},
        {"partition_by": "v"},
        {"partition_by": None},
        {"mask": "A.v <> B.v"},
        {"mask": None},
    ],
)
def test_what_state_depends_on_changes_the_signature(changes: dict[str, object]) -> None:
    assert signature(**changes) != signature()


@pytest.mark.parametrize(
    "changes",
    [
        {"when": "(A  ;  (B))"},
        {"within": "300 s"},
        {"mask": "(A.v=B.v)"},
        {"partition_by": {"A": "k", "B": "k"}},
        {"publish": "channel"},
        {"description": "words"},
    ],
)
def test_what_state_does_not_depend_on_keeps_the_signature(changes: dict[str, object]) -> None:
    assert signature(**changes) == signature()


def test_the_order_of_conjuncts_does_not_matter() -> None:
    assert signature(mask="A.v = B.v and A.w > 1") == signature(mask="A.w > 1 and A.v = B.v")


def test_a_changed_mask_of_a_primitive_event_keeps_partial_matches() -> None:
    before = planned({"E": BASE})
    after = planned({"A": {"on": "S", "id": ["n"], "mask": "v > 3"}, "E": BASE})
    assert before.signatures == after.signatures


def test_another_name_for_a_composite_event_keeps_partial_matches() -> None:
    before = planned({"X": {"when": "A ; B"}, "E": {"when": "X and C"}})
    after = planned({"Renamed": {"when": "A ; B"}, "E": {"when": "Renamed and C"}})
    assert {*before.signatures.values()} == {*after.signatures.values()}


@pytest.mark.parametrize(
    "others",
    [
        {"W": {"when": "C ; D", "within": "1 h"}},
        {"W": {"when": "A ; D", "partition_by": "v"}},
        {"W": {"raised": {"k": "int"}}},
        {"C": {"on": "S", "mask": "v = 1"}},
        {"V": {"when": "E ; C", "partition_by": "w"}},
    ],
)
def test_a_signature_does_not_change_when_unrelated_parts_do(others: dict[str, dict[str, object]]) -> None:
    before, after = planned({"E": BASE}), planned({**others, "E": BASE})
    assert before.signatures.items() <= by_text(after, before.signatures)
    ruled = planned({**others, "E": BASE}, {"R": rule("E")})
    assert before.signatures.items() <= by_text(ruled, before.signatures)


def by_text(found: Planned, texts: dict[str, str]) -> set[tuple[str, str]]:
    return {(node.text, node.signature) for node in found.plan.nodes if node.text in texts}


def test_a_changed_pattern_loses_its_partial_matches_and_an_equal_one_keeps_them() -> None:
    def of(**changes: object) -> str:
        pattern = {"on": "S", "pattern": "up+ down", "define": {"up": "v > 1", "down": "v < 1"}, "output": {"n": "n"}}
        found = planned({"M": {**pattern, **changes}})
        return found.node("M").signature

    assert of() == of(pattern="up+  down")
    others = [{"pattern": "up down"}, {"define": {"up": "v > 2", "down": "v < 1"}}, {"within": "1 h"}]
    others += [{"partition_by": "k"}, {"skip": "overlap"}]
    assert len({of(), *(of(**other) for other in others)}) == 1 + len(others)


def test_signatures_are_the_same_in_every_run_and_version() -> None:
    program = "from tests.plan.small import one; print(one('A ; B', within='5 min').node('A ; B').signature)"
    runs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert runs == {one("A ; B", within="5 min").node("A ; B").signature} == {"697c2e9a4851633a"}
