"""The plan as a tree for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from estream.duration import format_duration
from estream.plan.build import PASSES
from estream.plan.model import Leaf, Node, Pattern, Plan, Query, Rule, Stream, Subscription, Temporal

if TYPE_CHECKING:
    from rich.tree import Tree

WIDTH = 160
LONGEST = 100


def to_tree(plan: Plan) -> str:
    """Streams, queries, events with their nodes, rules by priority, and the passes that made the plan."""
    from rich.console import Console  # only this format needs it
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text(f"{plan.name} · order {plan.order}"))
    branches = (
        ("streams", map(_stream, plan.streams)),
        ("queries", map(_query, plan.queries)),
        ("primitive events", map(_leaf, plan.leaves)),
        ("temporal events", map(_temporal, plan.temporals)),
        ("pattern events", map(_pattern, plan.patterns)),
    )
    for title, lines in branches:
        _branch(tree, title, lines)
    if plan.subscriptions or plan.events:
        _Events(plan).under(tree.add(Text("detected events")))
    _branch(tree, "rules, higher priority first", map(_rule, plan.rules))
    _branch(tree, "passes", (f"{work.__name__}: {does}" for work, does in PASSES))
    page = io.StringIO()
    Console(file=page, width=WIDTH, color_system=None, legacy_windows=False).print(tree, soft_wrap=True)
    return page.getvalue()


def _branch(tree: Tree, title: str, lines: Iterable[str]) -> None:
    from rich.text import Text

    made = list(lines)
    if made:
        branch = tree.add(Text(title))
        for line in made:
            branch.add(Text(line))


@dataclass
class _Events:
    """Draws the nodes of events; a node that was drawn is only referred to by its number."""

    plan: Plan
    drawn: set[int] = field(default_factory=set)

    def under(self, branch: Tree) -> None:
        """Every event someone listens to, then the named ones that only others use."""
        heard = {each.event for each in self.plan.subscriptions}
        for subscription in self.plan.subscriptions:
            self._draw(branch, self.plan.nodes[subscription.node], _heading(subscription))
        for name, number in self.plan.events:
            if name not in heard and number not in self.drawn:
                self._draw(branch, self.plan.nodes[number], f"{name} = ")

    def _draw(self, branch: Tree, node: Node, heading: str = "") -> None:
        from rich.text import Text

        if node.number in self.drawn and node.operands:
            branch.add(Text(f"{heading}#{node.number} {self._name(node)}, see above"))
            return
        self.drawn.add(node.number)
        inner = branch.add(Text(f"{heading}#{node.number} {_node(node)}"))
        for conjunct in node.conjuncts:
            inner.add(Text(f"mask, kind {conjunct.kind}: {conjunct.text}"))
        for operand in node.operands:
            below = self.plan.nodes[operand]
            name = next((event for event, number in self.plan.events if number == operand), None)
            self._draw(inner, below, f"{name} = " if name and name != below.source else "")

    def _name(self, node: Node) -> str:
        return f"'{_short(node.text)}'"


def _heading(subscription: Subscription) -> str:
    context = f" in {subscription.context}" if subscription.context else ""
    channel = f", published to {subscription.publish}" if subscription.publish else ""
    return f"{subscription.event}{context}{channel} = "


def _node(node: Node) -> str:
    if node.operator in ("leaf", "temporal", "pattern"):
        return _joined(f"{node.source}", _by(node), f"group {node.group}")
    if node.operator == "relay":
        return _joined(f"relay of {node.source}", _by(node), f"group {node.group}, stage {node.stage}")
    return _joined(
        f"{node.operator}",
        _short(node.text),
        "" if node.operator == "or" else node.context,
        "point" if node.semantics == "point" else "",
        f"within {format_duration(node.within)}" if node.within else "",
        node.bound,
        f"group {node.group}",
        f"stage {node.stage}" if node.stage else "",
    )


def _by(node: Node) -> str:
    if node.keys and not node.key:
        return "by " + "; ".join(f"{leaf}: {', '.join(key) or 'nothing'}" for leaf, key in node.keys)
    return f"by {', '.join(node.key)}" if node.key else ""


def _stream(stream: Stream) -> str:
    columns = ", ".join(column.name for column in stream.columns)
    return _joined(stream.name, stream.format, columns, f"watermark {format_duration(stream.watermark)}")


def _query(query: Query) -> str:
    reads = f"reads {', '.join(query.reads)}"
    life = " ".join(f"{word} {time}" for word, time in (("from", query.start), ("until", query.stop)) if time)
    channel = f"published to {query.publish}" if query.publish else ""
    return _joined(
        query.name, query.kind, "stateful" if query.stateful else "", reads, life, channel, _short(query.text)
    )


def _leaf(leaf: Leaf) -> str:
    mask = f"mask {_short(leaf.mask_text)}" if leaf.mask_text else ""
    carries = f"carries {', '.join(leaf.needed)}" if leaf.needed else ""
    return _joined(leaf.name, "raised" if leaf.raised else f"on {leaf.query}", mask, carries)


def _temporal(temporal: Temporal) -> str:
    at = f"at {temporal.at} us since the epoch" if temporal.at is not None else ""
    every = f"every {format_duration(temporal.every)}" if temporal.every else ""
    return _joined(temporal.name, at, every, f"cron {temporal.cron} {temporal.timezone}" if temporal.cron else "")


def _pattern(pattern: Pattern) -> str:
    by = f"by {', '.join(pattern.partition)}" if pattern.partition else ""
    within = f"within {format_duration(pattern.within)}" if pattern.within else ""
    return _joined(pattern.name, f"on {pattern.query}", _short(pattern.text), by, within)


def _rule(rule: Rule) -> str:
    condition = f"if {_short(rule.condition_text)}" if rule.condition_text else ""
    actions = _short("; ".join(rule.actions))
    context = f"on {rule.event}" + (f" in {rule.context}" if rule.context else "")
    off = "" if rule.enabled else "not enabled"
    return _joined(f"{rule.priority}: {rule.name}", context, condition, actions, rule.coupling, off)


def _joined(*words: str) -> str:
    return " · ".join(filter(None, words))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
