"""Where each conjunct of a mask is asked (docs/semantics.md, section 2, Mask)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.plan.draft import Draft, Part, Use
from estream.plan.leaves import constituents
from estream.plan.place import leaves_named, place
from estream.plan.resolve import resolve
from estream.spec.event_expression import Apply, EventExpression, Name, to_text
from estream.spec.expression import Expression
from tests.plan.small import checked, one, planned
from tests.reference import masks as reference

VECTORS = Path(__file__).parent.parent / "conformance"
Asked: TypeAlias = tuple[tuple[int, ...], int, tuple[int, ...], Expression]
"""A conjunct: the way down to its node, its kind, the operands it names."""


def asked(when: str, mask: str) -> list[tuple[str, int, str]]:
    """Node, kind and text of every conjunct."""
    found = one(when, mask=mask, within="1 h")
    assert found.errors == []
    return [(node.text, each.kind, each.text) for node in found.plan.nodes for each in node.conjuncts]


@pytest.mark.parametrize(
    ("when", "mask", "expected"),
    [
        ("A ; B", "A.v > 1", [("A ; B", 1, "A.v > 1")]),
        ("A ; B", "A.v > 1 and B.v > 2", [("A ; B", 1, "A.v > 1"), ("A ; B", 1, "B.v > 2")]),
        ("A ; B", "A.v = B.v", [("A ; B", 2, "A.v = B.v")]),
        ("A and B", "B.v = A.v", [("A and B", 2, "B.v = A.v")]),
        ("A or B", "A.v = B.v", [("A or B", 3, "A.v = B.v")]),
        ("A or B", "A.v > 1", [("A or B", 1, "A.v > 1")]),
        ("(A ; B) and C", "A.v = B.v", [("A ; B", 2, "A.v = B.v")]),
        ("(A ; B) and C", "A.v = B.v and C.v = A.v", [("A ; B", 2, "A.v = B.v"), ("A ; B and C", 2, "C.v = A.v")]),
        ("A*(A, B, C)", "A.v = B.v", [("A*(A, B, C)", 2, "A.v = B.v")]),
        ("A*(A, B, C)", "B.v = C.v", [("A*(A, B, C)", 3, "B.v = C.v")]),
        ("A*(A, B, C)", "A.v + B.v = C.v", [("A*(A, B, C)", 3, "(A.v + B.v) = C.v")]),
        ("A ; B", "count(A) > 1", [("A ; B", 3, "count(A) > 1")]),
        ("times(2, A)", "A.v > 1", [("times(2, A)", 1, "A.v > 1")]),
        ("times(2, A)", "sum(A.v) > 1", [("times(2, A)", 3, "sum(A.v) > 1")]),
        ("not(B)[A, C]", "A.v = B.v", [("not(B)[A, C]", 2, "A.v = B.v")]),
        ("not(B)[A, C]", "B.v > 1", [("not(B)[A, C]", 1, "B.v > 1")]),
        ("A ; B", "1 = 1", [("A ; B", 3, "1 = 1")]),
    ],
)
def test_a_conjunct_is_asked_at_the_lowest_node_that_has_its_leaves(
    when: str, mask: str, expected: list[tuple[str, int, str]]
) -> None:
    assert asked(when, mask) == expected


def test_a_leaf_in_several_places_is_a_leaf_of_every_operand_that_has_one() -> None:
    assert asked("(A ; B) ; (A ; C)", "A.v > 1") == [("A ; B ; (A ; C)", 2, "A.v > 1")]


def test_parentheses_around_an_and_do_not_matter() -> None:
    assert asked("A ; B", "(A.v > 1 and (B.v > 2 and A.v = B.v))") == asked(
        "A ; B", "A.v > 1 and B.v > 2 and A.v = B.v"
    )


def test_a_named_event_is_not_entered() -> None:
    found = planned({"X": {"when": "A ; B"}, "E": {"when": "X and C", "mask": "A.v = B.v"}})
    assert found.node("A ; B").conjuncts == ()
    assert [(each.kind, each.operands) for each in found.node("X and C").conjuncts] == [(1, (0,))]


def test_a_pair_names_the_initiator_first() -> None:
    (conjunct,) = one("A*(A, B, C)", mask="C.v = A.v", within="1 h").node("A*(A, B, C)").conjuncts
    assert conjunct.operands == (0, 2)


@pytest.mark.parametrize(
    ("when", "mask", "never"),
    [
        ("not(B)[A, C]", "B.v = C.v", "B"),
        ("not(B)[A, C]", "count(B) > 1", "B"),
        ("absent(A, B, 1 s)", "sum(B.v) > 1", "B"),
        ("A(A, B, C)", "B.v = C.v", "C"),
        ("P(A, 1 s, C)", "count(C) > 1", "C"),
    ],
)
def test_to_name_what_is_never_a_constituent_is_an_error(when: str, mask: str, never: str) -> None:
    ((_, message),) = one(when, mask=mask).errors
    assert message.startswith("event 'E': mask asks '")
    assert message.endswith(f"where '{never}' is never a constituent")


def test_the_text_of_a_conjunct_has_no_casts_that_only_types_ask_for() -> None:
    assert asked("A ; B", "A.v > 1.5 AND A.n = B.k") == [("A ; B", 1, "A.v > 1.5"), ("A ; B", 2, "A.n = B.k")]


def test_the_text_of_a_conjunct_has_nothing_secret() -> None:
    found = planned({"E": {"when": "A ; B", "mask": "A.name = '${WORD}'"}}, environment={"WORD": "sesame"})
    (conjunct,) = found.node("A ; B").conjuncts
    assert conjunct.text == "A.name = '${WORD}'"


def definitions() -> Iterator[Any]:
    for name in ("events_basic", "events_nested"):
        for line in (VECTORS / f"{name}.jsonl").read_text().splitlines():
            case = json.loads(line)
            if any(event["mask"] for event in case["events"].values()):
                yield pytest.param(case["events"], id=case["name"])


@pytest.mark.parametrize("events", [*definitions()])
def test_every_mask_of_the_vectors_is_placed_as_in_the_reference(events: Mapping[str, Mapping[str, Any]]) -> None:
    draft = resolve(Draft(checked({name: written(event) for name, event in events.items()})[0]))
    placed = place(draft)
    assert placed.problems == ()
    for name in events:
        assert Counter(ours(placed, name)) == Counter(theirs(placed, name))


def written(event: Mapping[str, Any]) -> dict[str, object]:
    """An event of a vector as a CEQ file has it; what masks do not depend on is left out."""
    return {"when": event["when"], **({"mask": event["mask"]} if event["mask"] else {})}


LEAF = st.sampled_from("ABCD")
NAMES = st.builds(Name, st.sampled_from(["A", "B", "C", "D", "X"]))


def combined(inner: st.SearchStrategy[EventExpression]) -> st.SearchStrategy[EventExpression]:
    two = st.tuples(inner, inner)
    return st.one_of(
        st.builds(Apply, st.sampled_from(["or", "and", ";"]), two),
        st.builds(Apply, st.sampled_from(["not", "A", "A*"]), st.tuples(inner, inner, inner)),
        st.builds(Apply, st.sampled_from(["P", "P*", "absent"]), two, st.just(1_000_000)),
        st.builds(Apply, st.just("+"), st.tuples(inner), st.just(1_000_000)),
        st.builds(Apply, st.just("times"), st.tuples(inner), st.none(), st.just(2)),
    )


EXPRESSIONS = st.recursive(NAMES, combined, max_leaves=6)
CONJUNCTS = st.one_of(
    st.builds("{}.v > 1".format, LEAF),
    st.builds("{}.v <= {}.v".format, LEAF, LEAF),
    st.builds("{}.v + {}.v = {}.k".format, LEAF, LEAF, LEAF),
    st.builds("{}({}.v) > {}.v".format, st.sampled_from(["sum", "first", "count"]), LEAF, LEAF),
    st.builds("count({}) > 1".format, LEAF),
    st.builds("({}.v > 1 and {}.v = {}.v)".format, LEAF, LEAF, LEAF),
    st.builds("({}.v > 1 or {}.v = {}.v)".format, LEAF, LEAF, LEAF),
    st.just("1 < 2"),
)


@given(EXPRESSIONS, st.lists(CONJUNCTS, min_size=1, max_size=3).map(" and ".join))
def test_any_mask_is_placed_as_in_the_reference(when: EventExpression, mask: str) -> None:
    all_leaves = "(A or B or C or D)"
    events = {"X": {"when": "A ; B"}, "E": {"when": f"({to_text(when)}) ; {all_leaves}", "mask": mask}}
    placed = place(resolve(Draft(checked(events)[0])))
    found, expected = Counter(ours(placed, "E")), Counter(theirs(placed, "E"))
    refused = expected - found
    assert found <= expected
    assert len(placed.problems) == refused.total()
    for way, kind, _, expression in refused:
        able = constituents(placed, part_at(placed.definitions["E", None].root, way))
        assert kind == 3
        assert not set(leaves_named(expression)) <= set(able)


def part_at(part: Part | Use, way: tuple[int, ...]) -> Part | Use:
    for position in way:
        assert isinstance(part, Part)
        part = part.operands[position]
    return part


def ours(draft: Draft, event: str) -> Iterator[Asked]:
    """What the pass placed."""
    pending: list[tuple[tuple[int, ...], Part | Use]] = [((), draft.definitions[event, None].root)]
    while pending:
        way, part = pending.pop()
        if isinstance(part, Part):
            yield from ((way, each.kind, each.operands, each.expression) for each in part.conjuncts)
            pending += [((*way, position), operand) for position, operand in enumerate(part.operands)]


def theirs(draft: Draft, event: str) -> Iterator[Asked]:
    """What the reference places, of the same typed mask."""
    expressions = {name: each.when for name, each in draft.checked.events.items() if each.when is not None}
    top = expressions[event]
    top = top if isinstance(top, Apply) else Apply("or", (top,))
    placed = reference.place(draft.checked.events[event].mask, top, expressions)
    pending: list[tuple[tuple[int, ...], EventExpression]] = [((), top)]
    while pending:
        way, node = pending.pop()
        if isinstance(node, Apply):
            here = placed.get(id(node), reference.Conjuncts())
            yield from ((way, 1, (position,), each) for position, some in here.alone.items() for each in some)
            yield from ((way, 2, (0, position), each) for position, some in here.paired.items() for each in some)
            yield from ((way, 3, (), each) for each in here.finished)
            pending += [((*way, position), operand) for position, operand in enumerate(node.operands)]
