"""Sixth pass: nodes that would have to run both before and after a relay are copied, so that stages have an order.

Where E by k is made of X by k and of Y by v, and Y is itself made of X, the partitioning by k would feed itself. Then
the part of E that needs Y gets its own copies of what it shares with X; they see the same and detect the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from estream.plan.draft import Draft
from estream.plan.group import components
from estream.plan.model import Node
from estream.plan.share import signature


def separate(draft: Draft) -> Draft:
    """Nodes whose groups feed only later ones; mostly they are so already, and nothing changes."""
    groups = components(draft.nodes)
    tangled = _feeding_themselves(draft.nodes, groups)
    if not tangled:
        return draft
    levels = [level if groups[number] in tangled else 0 for number, level in enumerate(_levels(draft.nodes))]
    copies = _Copies(draft.nodes, levels)
    number = [copies.at(node.number, levels[node.number]) for node in draft.nodes]
    return replace(
        draft,
        nodes=tuple(copies.made),
        subscriptions=tuple(replace(each, node=number[each.node]) for each in draft.subscriptions),
        events=tuple((event, number[node]) for event, node in draft.events),
    )


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


@dataclass
class _Copies:
    """The nodes anew: all that a node is made of, down to relays, is on its level; 0 where it needs none."""

    nodes: tuple[Node, ...]
    levels: list[int]
    made: list[Node] = field(default_factory=list)
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)

    def at(self, number: int, level: int) -> int:
        """The new number of a node on a level, which is its own or a later one."""
        if (number, level) not in self.numbers:
            node, is_own = self.nodes[number], level == self.levels[number]
            operands = tuple(
                self.at(operand, self.levels[operand] if node.operator == "relay" else level)
                for operand in node.operands
            )
            known_as = node.signature if is_own else signature("level", level, node.signature)
            self.numbers[number, level] = len(self.made)
            self.made.append(replace(node, number=len(self.made), operands=operands, signature=known_as))
        return self.numbers[number, level]
