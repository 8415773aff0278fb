"""Copies of shared nodes: they see the same and detect the same, at the price of their own state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from estream.plan.draft import Draft
from estream.plan.model import Node
from estream.plan.share import signature


def copied(draft: Draft, places: Sequence[int], kind: str) -> Draft:
    """The nodes at their places, with copies of what others need at theirs; `kind` tells copies apart by their reason.

    Whoever listens to a node listens to the one at its own place.
    """
    copies = _Copies(draft.nodes, places, kind)
    number = [copies.at(node.number, places[node.number]) for node in draft.nodes]
    return replace(
        draft,
        nodes=tuple(copies.made),
        subscriptions=tuple(replace(each, node=number[each.node]) for each in draft.subscriptions),
        events=tuple((event, number[node]) for event, node in draft.events),
    )


@dataclass
class _Copies:
    """The nodes anew: all that a node is made of, down to relays, is at its place."""

    nodes: Sequence[Node]
    places: Sequence[int]
    kind: str
    made: list[Node] = field(default_factory=list)
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)

    def at(self, number: int, place: int) -> int:
        """The new number of a node at a place, which is its own or another."""
        if (number, place) not in self.numbers:
            node, is_own = self.nodes[number], place == self.places[number]
            operands = tuple(
                self.at(operand, self.places[operand] if node.operator == "relay" else place)
                for operand in node.operands
            )
            known_as = node.signature if is_own else signature(self.kind, place, node.signature)
            self.numbers[number, place] = len(self.made)
            self.made.append(replace(node, number=len(self.made), operands=operands, signature=known_as))
        return self.numbers[number, place]
