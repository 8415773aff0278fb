"""The plan as JSON, stable from version to version: keys are added, never changed.

Keys: `version` (1), `name`, `order`, `passes` [{name, does}], `streams` [{name, format, columns, time, watermark,
idle_after}], `tables` [{name, format, refresh}], `queries` [{name, kind, reads, columns, time, stateful, text, start,
stop, publish}], `leaves` [{name, query, mask, id, time, needed, raised, matched}], `temporals` [{name, at, every, cron,
timezone}], `patterns` [{name, query, pattern, partition, within, skip}], `nodes` [{number, operator, operands,
signature, group, stage, source, key, keys, context, semantics, within, duration, count, conjuncts [{kind, operands,
text}], bound, leaves, text}], `events` [{name, node}], `subscriptions` [{event, node, context, publish}], `rules`
[{name, event, context, condition, actions, priority, coupling, enabled}], `timers` [node]. `columns` are {name:
type}; times and durations are microseconds, and `${NAME}` stands for a number that a variable gave.
"""

from __future__ import annotations

import json
from typing import Any

from estream.hidden import shown_number
from estream.plan.build import PASSES
from estream.plan.model import Column, Leaf, Node, Pattern, Plan, Query, Rule, Stream
from estream.text import Text

_STREAM = ("name", "format", "time", "watermark", "idle_after")
_TABLE = ("name", "format", "refresh")
_QUERY = ("name", "kind", "reads", "time", "stateful", "text", "start", "stop", "publish")
_LEAF = ("name", "query", "id", "time", "needed", "raised", "matched")
_TEMPORAL = ("name", "at", "every", "cron", "timezone")
_PATTERN = ("name", "query", "partition", "within", "skip")
_NODE = (
    "number", "operator", "operands", "signature", "group", "stage", "source", "key", "context", "semantics", "within",
    "duration", "count", "bound", "leaves", "text",
)  # fmt: skip
_SUBSCRIPTION = ("event", "node", "context", "publish")
_RULE = ("name", "event", "context", "actions", "priority", "coupling", "enabled")


def to_json(plan: Plan) -> str:
    """The plan as a JSON document."""
    return json.dumps(as_data(plan), indent=2, ensure_ascii=False)


def as_data(plan: Plan) -> dict[str, Any]:
    """The plan as plain data."""
    shown = reached(plan)
    return {
        "version": 1,
        "name": plan.name,
        "order": plan.order,
        "passes": [{"name": work.__name__, "does": does} for work, does in PASSES],
        "streams": [_stream(each) for each in plan.streams],
        "tables": [_fields(each, _TABLE) for each in plan.tables],
        "queries": [_query(each) for each in plan.queries],
        "leaves": [_leaf(each) for each in plan.leaves],
        "temporals": [_fields(each, _TEMPORAL) for each in plan.temporals],
        "patterns": [_pattern(each) for each in plan.patterns],
        "nodes": [_node(node) for node in plan.nodes if node.number in shown],
        "events": [{"name": name, "node": node} for name, node in plan.events],
        "subscriptions": [_fields(each, _SUBSCRIPTION) for each in plan.subscriptions],
        "rules": [_rule(each) for each in plan.rules],
        "timers": [number for number in plan.timers if number in shown],
    }


def reached(plan: Plan) -> set[int]:
    """The nodes that the plan's events and subscriptions are made of."""
    pending = [*(node for _, node in plan.events), *(each.node for each in plan.subscriptions)]
    found: set[int] = set()
    while pending:
        number = pending.pop()
        if number not in found:
            found.add(number)
            pending += plan.nodes[number].operands
    return found


def _fields(thing: object, names: tuple[str, ...]) -> dict[str, Any]:
    found = {name: getattr(thing, name) for name in names}
    return {name: _shown(value) for name, value in found.items()}


def _shown(value: Any) -> Any:
    """The value, or the variable that gave it."""
    return value.shown if isinstance(value, Text) else shown_number(value) if isinstance(value, int) else value


def _columns(columns: tuple[Column, ...]) -> dict[str, str]:
    return {column.name: str(column.type) for column in columns}


def _stream(stream: Stream) -> dict[str, Any]:
    return {**_fields(stream, _STREAM), "columns": _columns(stream.columns)}


def _query(query: Query) -> dict[str, Any]:
    return {**_fields(query, _QUERY), "columns": _columns(query.columns)}


def _leaf(leaf: Leaf) -> dict[str, Any]:
    return {**_fields(leaf, _LEAF), "mask": leaf.mask_text}


def _pattern(pattern: Pattern) -> dict[str, Any]:
    return {**_fields(pattern, _PATTERN), "pattern": pattern.text}


def _node(node: Node) -> dict[str, Any]:
    conjuncts = [_fields(each, ("kind", "operands", "text")) for each in node.conjuncts]
    return {**_fields(node, _NODE), "keys": dict(node.keys), "conjuncts": conjuncts}


def _rule(rule: Rule) -> dict[str, Any]:
    return {**_fields(rule, _RULE), "condition": rule.condition_text}
