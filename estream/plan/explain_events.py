"""Detected events as trees of nodes: context, partition, bound and sharing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from estream.plan.explain_lines import Line, joined, length
from estream.plan.model import Conjunct, Node, Plan, Subscription

_SOURCES = ("leaf", "temporal", "pattern")


def events(plan: Plan) -> Iterator[Line]:
    """Every event someone listens to, then the named ones that are in no other."""
    drawing = _Drawing(plan, _users(plan), {number: event for event, number in reversed(plan.events)})
    heard = {each.event for each in plan.subscriptions}
    for subscription in plan.subscriptions:
        yield drawing.event(plan.nodes[subscription.node], subscription.event, subscription)
    for event, number in plan.events:
        if event not in heard and number not in drawing.drawn:
            yield drawing.event(plan.nodes[number], event)


def _users(plan: Plan) -> Mapping[int, set[object]]:
    """For each node the nodes and subscribed events that take its occurrences."""
    users: dict[int, set[object]] = defaultdict(set)
    for node in plan.nodes:
        for operand in node.operands:
            users[operand].add(node.number)
    for each in plan.subscriptions:
        users[each.node].add((each.event, each.context))
    return users


@dataclass
class _Drawing:
    """Draws a node with all below it once; where it comes again its number refers to it."""

    plan: Plan
    users: Mapping[int, set[object]]
    names: Mapping[int, str]
    drawn: set[int] = field(default_factory=set)

    def event(self, node: Node, name: str, heard: Subscription | None = None) -> Line:
        """The node of a named event, with the settings that its definition gives to all below."""
        channel = f"published to {heard.publish}" if heard and heard.publish else ""
        is_source = node.operator in _SOURCES
        settings = (
            "" if node.operator == "or" or is_source else node.context,
            "point" if node.semantics == "point" else "",
            _by(self.plan, node),
            f"within {length(node.within)}" if node.within else "",
        )
        return self._line(node, name, "" if is_source else f" = {node.text}", joined(*settings, channel))

    def _operand(self, node: Node) -> Line:
        if node.operator == "relay":
            anew = _by(self.plan, node) or "in one partition"
            return self._line(node, node.source or "", "", joined("relayed", anew, f"stage {node.stage}"))
        if node.operator in _SOURCES:
            return self._line(node, node.source or "", "", ())
        if node.number in self.names:
            return self.event(node, self.names[node.number])
        return self._line(node, "", node.text, ())

    def _line(self, node: Node, name: str, meaning: str, details: tuple[str, ...]) -> Line:
        number = f"#{node.number}"
        if node.number in self.drawn:
            return Line(name, (number, "as above"), meaning=meaning)
        self.drawn.add(node.number)
        masks = (Line(_mask(self.plan, node, each), is_name=False) for each in node.conjuncts)
        bound = "" if node.operator in ("leaf", "temporal", "relay") else node.bound
        shared = f"shared by {len(self.users[node.number])}" if len(self.users[node.number]) > 1 else ""
        operands = (self._operand(self.plan.nodes[each]) for each in node.operands)
        return Line(name, joined(number, *details, bound, shared), (*masks, *operands), meaning)


def _mask(plan: Plan, node: Node, conjunct: Conjunct) -> str:
    if conjunct.kind == 1:
        return f"mask of {plan.nodes[node.operands[conjunct.operands[0]]].text} alone: {conjunct.text}"
    return f"mask of {'each pair' if conjunct.kind == 2 else 'the finished occurrence'}: {conjunct.text}"


def _by(plan: Plan, node: Node) -> str:
    """The key of a node, or where they differ that of each event in it."""
    keys = _keys(plan, node)
    if not any(keys.values()):
        return ""
    if len(set(keys.values())) == 1:
        return f"by {', '.join(next(iter(keys.values())))}"
    return "by " + "; ".join(f"{name}: {', '.join(key)}" for name, key in keys.items())


def _keys(plan: Plan, node: Node) -> Mapping[str, tuple[str, ...]]:
    if node.operator == "temporal":
        return {}
    if node.operator == "relay":
        return dict(node.keys)
    if node.operator in _SOURCES:
        return {node.source or "": node.key}
    found: dict[str, tuple[str, ...]] = {}
    for operand in node.operands:
        found |= _keys(plan, plan.nodes[operand])
    return found
