"""Eighth pass: nodes that are partitioned alike form a group; relays put a group into a later stage."""

from __future__ import annotations

from dataclasses import replace

from estream.plan.draft import Draft
from estream.plan.model import Node


def group(draft: Draft) -> Draft:
    """Nodes with their group (in the order of the first node) and stage."""
    groups = components(draft.nodes)
    stages: dict[int, int] = {}
    for node in draft.nodes:
        stages.setdefault(groups[node.number], 0)
    # A relay reads a group that may itself have got its stage from a relay: settle until nothing moves.
    moved = True
    while moved:
        moved = False
        for node in draft.nodes:
            if node.operator == "relay":
                least = stages[groups[node.operands[0]]] + 1
                if stages[groups[node.number]] < least:
                    stages[groups[node.number]] = least
                    moved = True
    nodes = tuple(replace(node, group=groups[node.number], stage=stages[groups[node.number]]) for node in draft.nodes)
    return replace(draft, nodes=nodes)


def components(nodes: tuple[Node, ...]) -> list[int]:
    """For each node the number of its group: what hangs together without the edges into relays."""
    leader = list(range(len(nodes)))

    def find(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    for node in nodes:
        if node.operator != "relay":
            for operand in node.operands:
                first, second = sorted((find(node.number), find(operand)))
                leader[second] = first
    numbers: dict[int, int] = {}
    return [numbers.setdefault(find(node.number), len(numbers)) for node in nodes]
