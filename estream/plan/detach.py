"""Sixth pass: a row comes into a partitioning once, so events that key the same rows otherwise share no nodes.

Where X by {A: k, B: k} and Y by {A: k, B: v} share the leaf A by k, they would be one group, in which B has two keys.
Then Y gets its own copy of what it shares with X.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, TypeAlias

from estream.plan.copies import copied
from estream.plan.draft import Draft
from estream.plan.group import components
from estream.plan.model import Node

Inputs: TypeAlias = Mapping[tuple[str, str | int], Any]
"""What comes into nodes from outside, leaves and relays, each with its key."""


def detach(draft: Draft) -> Draft:
    """Nodes whose groups have one key for each of their inputs; mostly they have already, and nothing changes."""
    groups = components(draft.nodes)
    mixed = {group for group in set(groups) if not _agree(*_inputs_of_each(draft.nodes, groups, group))}
    return copied(draft, _places(draft.nodes, groups, mixed), "detached") if mixed else draft


def _places(nodes: tuple[Node, ...], groups: list[int], mixed: set[int]) -> list[int]:
    """For each node of a mixed group its place: the first one where it is needed; inputs of one place agree."""
    taken: dict[int, list[dict[tuple[str, str | int], Any]]] = defaultdict(list)
    places: dict[int, int] = {}
    used = {operand for node in nodes if node.operator != "relay" for operand in node.operands}
    for top in (node for node in nodes if groups[node.number] in mixed and node.number not in used):
        below = [nodes[number] for number in sorted(_below(nodes, top.number))]
        inputs = {name: key for node in below for name, key in _inputs(node).items()}
        there = taken[groups[top.number]]
        place = next((place for place, known in enumerate(there) if _agree(known, inputs)), len(there))
        there[place : place + 1] = [{**(there[place] if place < len(there) else {}), **inputs}]
        for node in below:
            places[node.number] = min(place, places.get(node.number, place))
    return [places.get(node.number, 0) for node in nodes]


def _below(nodes: tuple[Node, ...], number: int) -> set[int]:
    """A node and all it is made of, down to relays."""
    found: set[int] = set()
    pending = [number]
    while pending:
        node = nodes[pending.pop()]
        if node.number not in found:
            found.add(node.number)
            pending += () if node.operator == "relay" else node.operands
    return found


def _inputs(node: Node) -> Inputs:
    if node.operator == "leaf":
        return {("leaf", node.source or ""): node.key}
    return {("relay", node.operands[0]): (node.key, node.keys)} if node.operator == "relay" else {}


def _inputs_of_each(nodes: tuple[Node, ...], groups: list[int], group: int) -> list[Inputs]:
    return [_inputs(node) for node in nodes if groups[node.number] == group]


def _agree(*several: Inputs) -> bool:
    """Whether no input has different keys in them."""
    known: dict[tuple[str, str | int], Any] = {}
    return all(known.setdefault(name, key) == key for inputs in several for name, key in inputs.items())
