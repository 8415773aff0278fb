"""The event graph as the kernel runs it: flat arrays made once from the nodes of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt

from estream.event import words
from estream.event.words import CONTEXTS, FOREVER, INPUTS, NONE, OPERATORS, OR, SLOTS_OF, TIMED
from estream.plan.model import Column, Conjunct, Leaf, Node, Plan, Subscription, Temporal

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that are partitioned alike, and run together."""

    number: int
    stage: int
    inputs: tuple[Node, ...]
    """Its leaves and relays: where occurrences come in."""
    temporals: tuple[Node, ...]
    timers: Words
    slots: int
    """How many lists a partition has."""

    @property
    def is_keyed(self) -> bool:
        """Whether it has more than the one partition."""
        return self.key_length > 0

    @property
    def key_length(self) -> int:
        """How many attributes a key has."""
        return max((len(key) for node in self.inputs for key in (node.key, *dict(node.keys).values())), default=0)


@dataclass(frozen=True, slots=True)
class Graph:
    """What the kernel runs, immutable. `events` are the names behind event codes: leaves, then temporal events."""

    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...]
    temporals: tuple[Temporal, ...]
    subscriptions: tuple[Subscription, ...]
    groups: tuple[Group, ...]
    """In the order in which they run."""
    events: tuple[str, ...]
    columns: tuple[Column, ...]
    """The attributes that travel with a row: those of all leaves, each name and type once."""
    conjuncts: tuple[Conjunct, ...]
    arrival: bool
    table: Words = field(repr=False)
    operands: Words = field(repr=False)
    parents: Words = field(repr=False)
    conjunct_table: Words = field(repr=False)
    event_rank: Words = field(repr=False)
    slot_of: tuple[int, ...] = ()

    @property
    def has_nested(self) -> bool:
        """Whether composites can wait: then the pool outlives the step."""
        simple = {node.number for node in self.nodes if OPERATORS.index(node.operator) in INPUTS[:2]}
        waiting = (node for node in self.nodes if OPERATORS.index(node.operator) not in (*INPUTS, OR))
        return any(operand not in simple for node in waiting for operand in node.operands)

    def event_code(self, name: str) -> int:
        """The code that rows of this primitive event carry."""
        return self.events.index(name)

    def column_of(self, event: str, attribute: str) -> int:
        """The number of the column that carries a leaf's attribute."""
        leaf = self.leaves[self.event_code(event)]
        return self.columns.index(next(column for column in leaf.columns if column.name == attribute))


def compile_graph(plan: Plan) -> Graph:
    """The graph of a plan."""
    return make_graph(plan.nodes, plan.leaves, plan.temporals, plan.subscriptions, plan.order == "arrival")


def make_graph(
    nodes: Sequence[Node],
    leaves: Sequence[Leaf],
    temporals: Sequence[Temporal],
    subscriptions: Sequence[Subscription],
    arrival: bool = False,
) -> Graph:
    """The graph of nodes in topological order, each at the index that is its number."""
    events = (*(leaf.name for leaf in leaves), *(temporal.name for temporal in temporals))
    slots = _slots(nodes)
    parents = _parents(nodes)
    return Graph(
        nodes=tuple(nodes),
        leaves=tuple(leaves),
        temporals=tuple(temporals),
        subscriptions=tuple(subscriptions),
        groups=_groups(nodes, slots),
        events=events,
        columns=_columns(leaves),
        conjuncts=tuple(chain.from_iterable(node.conjuncts for node in nodes)),
        arrival=arrival,
        table=_node_table(nodes, subscriptions, slots, parents),
        operands=_flat(node.operands for node in nodes),
        parents=_flat(parents),
        conjunct_table=_conjunct_table(nodes),
        event_rank=np.argsort(np.argsort(np.array(events or ("",), dtype=object))).astype(np.int64),
        slot_of=slots,
    )


def _columns(leaves: Sequence[Leaf]) -> tuple[Column, ...]:
    needed = (column for leaf in leaves for column in leaf.columns if column.name in leaf.needed)
    return tuple(dict.fromkeys(needed))


def _flat(lists: Iterable[Sequence[int]]) -> Words:
    return np.array([*chain.from_iterable(lists), NONE], dtype=np.int64)


def _slots(nodes: Sequence[Node]) -> tuple[int, ...]:
    """The first slot of each node in its group."""
    used: dict[int, int] = {}
    slots = []
    for node in nodes:
        first = used.setdefault(node.group, 0)
        slots.append(first)
        used[node.group] = first + SLOTS_OF.get(OPERATORS.index(node.operator), 0)
    return tuple(slots)


def _parents(nodes: Sequence[Node]) -> list[list[int]]:
    """Who is to be visited after a node: relays and patterns are fed from outside, so they are nobody's parents."""
    parents: list[list[int]] = [[] for _ in nodes]
    for node in nodes:
        if node.operator not in ("relay", "pattern"):
            for operand in dict.fromkeys(node.operands):
                parents[operand].append(node.number)
    return parents


def _groups(nodes: Sequence[Node], slots: Sequence[int]) -> tuple[Group, ...]:
    groups = []
    for number in dict.fromkeys(node.group for node in nodes):
        members = [node for node in nodes if node.group == number]
        codes = {node.number: OPERATORS.index(node.operator) for node in members}
        groups.append(
            Group(
                number=number,
                stage=max(node.stage for node in members),
                inputs=tuple(node for node in members if node.operator in ("leaf", "relay", "pattern")),
                temporals=tuple(node for node in members if node.operator == "temporal"),
                timers=np.array([n.number for n in members if codes[n.number] in TIMED], dtype=np.int64),
                slots=max(slots[n.number] + SLOTS_OF.get(codes[n.number], 0) for n in members),
            )
        )
    return tuple(sorted(groups, key=lambda group: group.stage))


def _node_table(
    nodes: Sequence[Node], subscriptions: Sequence[Subscription], slots: Sequence[int], parents: Sequence[Sequence[int]]
) -> Words:
    listened = {one.node for one in subscriptions} | {n.operands[0] for n in nodes if n.operator == "relay"}
    table = np.zeros((len(nodes), words.NODE_WORDS), dtype=np.int64)
    operand = parent = conjunct = 0
    for node, row in zip(nodes, table, strict=True):
        row[words.OPERATOR] = OPERATORS.index(node.operator)
        row[words.CONTEXT] = CONTEXTS.index(node.context)
        row[words.POINT] = node.semantics == "point"
        row[words.WITHIN] = FOREVER if node.within is None else node.within
        row[words.DURATION] = node.duration or 0
        row[words.COUNT] = node.count or 0
        row[words.SLOT] = slots[node.number]
        row[words.RECORDED] = node.number in listened
        row[words.FIRST_OPERAND], row[words.OPERAND_COUNT] = operand, len(node.operands)
        row[words.FIRST_PARENT], row[words.PARENT_COUNT] = parent, len(parents[node.number])
        row[words.FIRST_CONJUNCT], row[words.CONJUNCT_COUNT] = conjunct, len(node.conjuncts)
        row[words.DISTINCT] = _is_distinct(nodes, node)
        row[words.PLAIN] = (
            node.operator == ";" and not node.conjuncts and all(nodes[one].operator == "leaf" for one in node.operands)
        )
        row[words.DIRECT] = (
            node.operator == "leaf"
            and node.number not in listened
            and all(not parents[one] and _is_distinct(nodes, nodes[one]) for one in parents[node.number])
        )
        operand += len(node.operands)
        parent += len(parents[node.number])
        conjunct += len(node.conjuncts)
    return table


def _is_distinct(nodes: Sequence[Node], node: Node) -> bool:
    """Whether no two of a node's occurrences in an epoch have the same constituents."""
    return node.operator != "or" and all(nodes[one].operator in ("leaf", "temporal") for one in node.operands)


def _conjunct_table(nodes: Sequence[Node]) -> Words:
    """Kind, and the operand whose occurrence is asked (of kind 2 the one that is not the initiator's)."""
    asked = chain.from_iterable(node.conjuncts for node in nodes)
    rows = [(conjunct.kind, 0 if conjunct.kind == 3 else conjunct.operands[-1]) for conjunct in asked]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)
