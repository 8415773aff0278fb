"""What runs where: the groups of a plan as routes, each a graph of its own whose rows travel by one key.

A group's partitions must not be spread over shards, and groups that are partitioned otherwise want the same row on
another shard. So groups with the same keys form a route; a row goes once to every route its event has part in.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from zlib import crc32

from estream.event.graph import Graph, make_graph
from estream.plan.model import Leaf, Node, Plan, Subscription, Temporal
from estream.stream.watermark import Timing

RELAY = "relay "
"""Before the signature of a node: the name under which its occurrences leave for the second stage."""

ROWS = "rows"
"""The route of events that wait for nothing: their rows are spread by their ids."""

STAGES = (0, 1)
"""The host stages of every query; relays and all that reads them run in the second."""


@dataclass(frozen=True, slots=True)
class Route:
    """Groups that are partitioned alike."""

    name: str
    """Says the keys, so that the same partitioning has the same name whatever else changes."""
    stage: int
    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...]
    temporals: tuple[Temporal, ...]
    subscriptions: tuple[Subscription, ...]
    keys: Mapping[str, tuple[str, ...]]
    """Leaf event to the attributes its rows travel by."""
    relays: Mapping[str, tuple[int, Mapping[str, tuple[str, ...]]]]
    """What the second stage reads of the first, by signature: the node here that stands for it, and for each leaf that
    can be the last constituent the attributes it travels by."""
    arrival: bool = False

    @property
    def label(self) -> str:
        """What tells it from the other routes."""
        return f"{self.stage}:{self.name}"

    def graph(self) -> Graph:
        """The graph of the route."""
        return make_graph(self.nodes, self.leaves, self.temporals, self.subscriptions, self.arrival)

    def home(self, shards: int) -> int:
        """The shard of what has no key."""
        return crc32(self.name.encode()) % shards


def routes(plan: Plan, computed: Iterable[str] = ()) -> tuple[Route, ...]:
    """The routes of a plan, those of the first stage first.

    `computed` are queries that the first stage computes: what reads their rows runs in the second.
    """
    plan = _later(plan, {leaf.name for leaf in plan.leaves if leaf.query in set(computed)})
    homes: dict[tuple[int, str], set[int]] = {}
    together = any(node.stage > 1 for node in plan.nodes)
    for group in dict.fromkeys(node.group for node in plan.nodes):
        members = [node for node in plan.nodes if node.group == group]
        stage = min(members[0].stage, 1)
        # Relays of relays would need a stage more than there is: they meet on one shard, without any key.
        name = "" if together and stage else _home(members)
        homes.setdefault((stage, name), set()).add(group)
    return tuple(_route(plan, name, stage, groups) for (stage, name), groups in sorted(homes.items()))


def _later(plan: Plan, leaves: set[str]) -> Plan:
    """The plan with groups that read these leaves in the second stage, and those that read them after it."""
    if not leaves:
        return plan
    stages = {node.group: 0 for node in plan.nodes}
    for _ in stages:
        for node in plan.nodes:
            least = 1 if node.operator == "leaf" and node.source in leaves else 0
            if node.operator == "relay":
                least = stages[plan.nodes[node.operands[0]].group] + 1
            stages[node.group] = max(stages[node.group], least)
    return replace(plan, nodes=tuple(replace(node, stage=stages[node.group]) for node in plan.nodes))


def timings_of(plan: Plan, speeds: Mapping[str, float], derived: Collection[str] = ()) -> dict[str, Timing]:
    """What the streams of a plan say of their time; `speeds` tells those that are played back.

    `derived` are the streams that are made of others.
    """
    return {
        stream.name: Timing(stream.watermark, stream.idle_after, speeds.get(stream.name, 1.0), stream.name in derived)
        for stream in plan.streams
    }


def _home(members: Iterable[Node]) -> str:
    """The keys of a group as text."""
    inputs = [node for node in members if node.operator in ("leaf", "relay", "pattern")]
    keys = {key for node in inputs for key in (dict(node.keys).values() if node.keys else (node.key,))}
    if keys == {()} and all(node.operator in ("leaf", "or") for node in members):
        return ROWS
    if len(keys) == 1:
        return ",".join(keys.pop())
    return json.dumps(sorted((node.source, node.key, node.keys) for node in inputs))


def _relayed(plan: Plan) -> Iterator[Subscription]:
    """What the second stage asks of the first."""
    for number in sorted({node.operands[0] for node in plan.nodes if node.operator == "relay"}):
        if plan.nodes[number].stage == 0:
            yield Subscription(f"{RELAY}{plan.nodes[number].signature}", number)


def _travels_by(relay: Node) -> dict[str, tuple[str, ...]]:
    return dict(relay.keys) or dict.fromkeys(relay.leaves, relay.key)


def _route(plan: Plan, name: str, stage: int, groups: set[int]) -> Route:
    chosen = [node for node in plan.nodes if node.group in groups]
    sources = [
        plan.nodes[node.operands[0]]
        for node in chosen
        if node.operator == "relay" and plan.nodes[node.operands[0]].group not in groups
    ]
    # What is relayed from outside stands there as a node that nothing feeds.
    outside = {node.number: replace(node, operator="or", operands=(), conjuncts=(), key=()) for node in sources}
    kept = {**outside, **{node.number: node for node in chosen}}
    numbers = {number: place for place, number in enumerate(sorted(kept))}
    nodes = tuple(
        replace(kept[number], number=place, operands=tuple(numbers[operand] for operand in kept[number].operands))
        for number, place in numbers.items()
    )
    named = {node.source for node in chosen} | {leaf for node in sources for leaf in node.leaves}
    return Route(
        name=name,
        stage=stage,
        nodes=nodes,
        leaves=tuple(leaf for leaf in plan.leaves if leaf.name in named),
        temporals=tuple(temporal for temporal in plan.temporals if temporal.name in named),
        subscriptions=tuple(
            replace(one, node=numbers[one.node])
            for one in (*plan.subscriptions, *_relayed(plan))
            if one.node in numbers and one.node not in outside and (stage == 0 or not one.event.startswith(RELAY))
        ),
        keys={node.source or "": node.key if name else () for node in chosen if node.operator in ("leaf", "pattern")},
        relays={
            plan.nodes[node.operands[0]].signature: (numbers[node.operands[0]], _travels_by(node) if name else {})
            for node in chosen
            if node.operator == "relay" and node.operands[0] in outside
        },
        arrival=plan.order == "arrival",
    )
