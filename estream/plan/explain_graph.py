"""The plan as a graph: Graphviz's dot, and mermaid for documents."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from estream.hidden import shown_number
from estream.plan import explain_pattern
from estream.plan.explain_json import reached
from estream.plan.model import Node, Plan

Kind: TypeAlias = Literal["stream", "table", "query", "event", "node", "state", "rule"]

_DOT: Mapping[Kind, str] = {
    "stream": "shape=cylinder",
    "table": "shape=folder",
    "query": "shape=box",
    "event": "shape=ellipse",
    "node": "shape=box, style=rounded",
    "state": "shape=circle",
    "rule": "shape=hexagon",
}
_MERMAID: Mapping[Kind, tuple[str, str]] = {
    "stream": ("[(", ")]"),
    "table": ("[/", "/]"),
    "query": ("[", "]"),
    "event": ("([", "])"),
    "node": ("(", ")"),
    "state": ("((", "))"),
    "rule": ("{{", "}}"),
}


@dataclass(frozen=True, slots=True)
class Item:
    """A thing in the picture."""

    id: str
    kind: Kind
    label: str


@dataclass(frozen=True, slots=True)
class Arrow:
    """Where rows, occurrences or detections go; relays are drawn otherwise."""

    source: str
    target: str
    relayed: bool = False


def to_dot(plan: Plan) -> str:
    """The plan in the language of Graphviz."""
    lines = [f"digraph {_quoted(plan.name)} {{", "  rankdir=LR;"]
    items, arrows = picture(plan)
    lines += [f"  {item.id} [label={_quoted(item.label)}, {_DOT[item.kind]}];" for item in items]
    lines += [f"  {arrow.source} -> {arrow.target}{' [style=dashed]' if arrow.relayed else ''};" for arrow in arrows]
    return "\n".join([*lines, "}", ""])


def to_mermaid(plan: Plan) -> str:
    """The plan as a mermaid flowchart."""
    lines = ["flowchart LR"]
    items, arrows = picture(plan)
    for item in items:
        opening, closing = _MERMAID[item.kind]
        lines.append(f'  {item.id}{opening}"{_escaped(item.label)}"{closing}')
    lines += [f"  {arrow.source} {'-.->' if arrow.relayed else '-->'} {arrow.target}" for arrow in arrows]
    return "\n".join([*lines, ""])


def picture(plan: Plan) -> tuple[list[Item], list[Arrow]]:
    """What is drawn; arrows to parts that are not in the plan are left out."""
    items = list(_items(plan))
    known = {item.id for item in items}
    arrows = [arrow for arrow in dict.fromkeys(_arrows(plan)) if {arrow.source, arrow.target} <= known]
    return items, arrows


def _items(plan: Plan) -> Iterator[Item]:
    yield from (Item(f"query_{each.name}", "stream", each.name) for each in plan.streams)
    yield from (Item(f"query_{each.name}", "table", each.name) for each in plan.tables)
    yield from (Item(f"query_{each.name}", "query", f"{each.name}\n{each.kind}") for each in plan.queries)
    shown = reached(plan)
    names: dict[int, list[str]] = {}
    for event, number in [*plan.events, *((each.event, each.node) for each in plan.subscriptions)]:
        if event not in names.setdefault(number, []):
            names[number].append(event)
    for node in plan.nodes:
        if node.number in shown:
            yield _node(node, names.get(node.number, []))
            yield from (Item(id, "state", label) for id, label in explain_pattern.states(node))
    yield from (
        Item(f"rule_{each.name}", "rule", f"{each.name}\npriority {shown_number(each.priority)}") for each in plan.rules
    )


def _node(node: Node, names: list[str]) -> Item:
    key = (f"by {', '.join(node.key)}",) if node.key else ()
    if node.operator in ("leaf", "temporal", "pattern"):
        return Item(f"node_{node.number}", "event", "\n".join((node.source or "", *key)))
    context = () if node.operator in ("or", "relay") else (node.context,)
    words = (*names, node.text if node.operator != "relay" else f"{node.text} anew", *context, *key)
    return Item(f"node_{node.number}", "event" if names else "node", "\n".join(words))


def _arrows(plan: Plan) -> Iterator[Arrow]:
    for query in plan.queries:
        yield from (Arrow(f"query_{read}", f"query_{query.name}") for read in query.reads)
    rows = {leaf.name: leaf.query for leaf in plan.leaves}
    for node in plan.nodes:
        target = f"node_{node.number}"
        if node.operator == "leaf" and node.source in rows:
            yield Arrow(f"query_{rows[node.source]}", target)
        if node.operator == "pattern":
            yield from (Arrow(source, end) for source, end in explain_pattern.arrows(node))
            continue
        yield from (Arrow(f"node_{operand}", target, node.operator == "relay") for operand in node.operands)
    for rule in plan.rules:
        for heard in plan.subscriptions:
            if heard.event == rule.event and heard.context == rule.context:
                yield Arrow(f"node_{heard.node}", f"rule_{rule.name}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    """Mermaid reads entities in quotes; `#` begins one of its own."""
    return html.escape(text.replace("#", "&num;"), quote=True).replace("&amp;num;", "#35;").replace("\n", "<br/>")
