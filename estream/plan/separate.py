"""Seventh pass: nodes that would have to run both before and after a relay are copied, so that stages have an order.

Where E by k is made of X by k and of Y by v, and Y is itself made of X, the partitioning by k would feed itself. Then
the part of E that needs Y gets its own copies of what it shares with X; they see the same and detect the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from estream.plan.copies import copied
from estream.plan.draft import Draft
from estream.plan.group import components
from estream.plan.model import Node


def separate(draft: Draft) -> Draft:
    """Nodes whose groups feed only later ones; mostly they are so already, and nothing changes."""
    groups = components(draft.nodes)
    tangled = _feeding_themselves(draft.nodes, groups)
    if not tangled:
        return draft
    levels = [level if groups[number] in tangled else 0 for number, level in enumerate(_levels(draft.nodes))]
    return copied(draft, levels, "level")


def _feeding_themselves(nodes: tuple[Node, ...], groups: list[int]) -> set[int]:
    """The groups that hear of themselves, through one relay or many."""
    feeds: dict[int, set[int]] = defaultdict(set)
    for node in nodes:
        if node.operator == "relay":
            feeds[groups[node.operands[0]]].add(groups[node.number])
    return {group for group in feeds if group in _reached(group, feeds)}


def _reached(start: int, feeds: Mapping[int, set[int]]) -> set[int]:
    found: set[int] = set()
    pending = [start]
    while pending:
        fresh = feeds.get(pending.pop(), set()) - found
        found |= fresh
        pending += fresh
    return found


def _levels(nodes: tuple[Node, ...]) -> list[int]:
    """For each node how many relays stand one below the other in it."""
    levels: list[int] = []
    for node in nodes:
        below = max((levels[operand] for operand in node.operands), default=0)
        levels.append(below + 1 if node.operator == "relay" else below)
    return levels
