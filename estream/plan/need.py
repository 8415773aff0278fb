"""Tenth pass: which events come in from outside, and which of their columns have to travel."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from estream.errors import EStreamError
from estream.hidden import HiddenNumber
from estream.plan.draft import Draft
from estream.plan.model import Column, Leaf, Pattern, Temporal
from estream.plan.pattern import matches_leaf, partition_of, rows_leaf
from estream.spec import model
from estream.spec.check_times import microseconds
from estream.spec.checked import CheckedEvent, CheckedRule
from estream.spec.expression import Attribute, Expression, walk
from estream.spec.expression_parser import parse_expression
from estream.text import Text

RAISED_TIME = "_time"
"""The time column of raised events: when they were appended to their channel."""

_TEMPLATE = re.compile(r"\{\s*(\w+)\.(\w+)\s*\}")

Needs: TypeAlias = dict[str, set[str]]
"""Leaf event to the columns asked for."""


def need(draft: Draft) -> Draft:
    """Leaves with the columns that masks, keys, ids, rules and outputs ask for, temporal events and patterns."""
    needs: Needs = defaultdict(set)
    for leaf, column in _asked(draft):
        needs[leaf].add(column)
    used = {node.source for node in draft.nodes if node.operator in ("leaf", "temporal", "pattern")}
    events = [event for event in draft.checked.events.values() if event.name in used]
    patterns = {e.name: _pattern(draft, e, e.spec) for e in events if isinstance(e.spec, model.PatternEvent)}
    leaves = [_leaf(draft, e, needs[e.name]) for e in events if e.kind in ("primitive", "raised")]
    for each in patterns.values():
        leaves += [rows_leaf(each), matches_leaf(each, needs[each.name])]
    return replace(
        draft,
        nodes=tuple(
            replace(n, pattern=patterns[n.source or ""]) if n.operator == "pattern" else n for n in draft.nodes
        ),
        leaves=tuple(leaves),
        temporals=tuple(_temporal(e.name, e.spec) for e in events if isinstance(e.spec, model.TemporalEvent)),
        patterns=tuple(patterns.values()),
    )


def _asked(draft: Draft) -> Iterator[tuple[str, str]]:
    for node in draft.nodes:
        for conjunct in node.conjuncts:
            yield from _attributes(conjunct.expression)
        keys = node.keys or ((node.source or "", node.key),)
        yield from ((leaf, attribute) for leaf, key in keys for attribute in key)
    for rule in draft.checked.rules.values():
        asked = _of_rule(rule)
        yield from _everything(draft, [str(rule.spec.on)]) if asked is None else asked
    ruled = {str(rule.spec.on) for rule in draft.checked.rules.values()}
    yield from _everything(
        draft, [each.event for each in draft.subscriptions if each.publish or each.event not in ruled]
    )
    yield from _everything(draft, draft.observe)


def _everything(draft: Draft, events: Iterable[str]) -> Iterator[tuple[str, str]]:
    for event in events:
        if event in draft.leaves_of:
            for leaf in draft.leaves_of[event].constituents:
                yield from ((leaf, column) for column in draft.checked.events[leaf].columns or ())


def _attributes(expression: Expression | None) -> Iterator[tuple[str, str]]:
    for part in walk(expression) if expression is not None else ():
        if isinstance(part, Attribute) and part.event is not None:
            yield part.event, part.name


def _of_rule(rule: CheckedRule) -> list[tuple[str, str]] | None:
    """What a rule asks for by name; None if it is handed the whole detection."""
    if isinstance(rule.spec.condition, model.PythonCondition):
        return None
    asked = list(_attributes(rule.condition))
    for action in rule.spec.actions:
        texts = _templates(action)
        if texts is None:
            return None
        asked += [(found[1], found[2]) for text in texts for found in _TEMPLATE.finditer(text)]
        if isinstance(action, model.RaiseAction):
            asked += [pair for text in action.raise_.attributes.values() for pair in _of_text(text)]
    return asked


def _templates(action: model.Action) -> list[str] | None:
    """The texts of an action that name attributes; None if the action gets the whole detection."""
    match action:
        case model.LogAction():
            return [action.log]
        case model.SqlAction():
            return list(action.sql.values.values())
        case model.EmailAction() if action.email.body is not None:
            return [action.email.subject, action.email.body]
        case model.WebhookAction() if action.webhook.body is not None:
            return [action.webhook.url, action.webhook.body, *action.webhook.headers.values()]
        case model.RaiseAction():
            return []
        case _:
            return None


def _of_text(text: Text) -> Iterator[tuple[str, str]]:
    try:
        yield from _attributes(parse_expression(text))
    except EStreamError:
        return  # said by the check already


def _columns(event: CheckedEvent) -> tuple[Column, ...]:
    return tuple(Column(str(name), kind) for name, kind in (event.columns or {}).items())


def _leaf(draft: Draft, event: CheckedEvent, asked: set[str]) -> Leaf:
    columns, wanted = _columns(event), {name.lower() for name in asked}
    query = draft.checked.queries.get(event.query or "")
    given = event.spec.id if isinstance(event.spec, model.PrimitiveEvent) else None
    known_by = tuple(map(str, given or (query.default_id if query else ())))
    wanted |= {name.lower() for name in known_by}
    text = event.spec.mask.shown if isinstance(event.spec, model.PrimitiveEvent) and event.spec.mask else None
    return Leaf(
        event.name,
        event.query or event.name,
        event.mask,
        text,
        known_by,
        (query.time if query else None) or RAISED_TIME,
        columns,
        tuple(column.name for column in columns if column.name.lower() in wanted),
        raised=event.kind == "raised",
    )


def _temporal(name: str, spec: model.TemporalEvent) -> Temporal:
    every = spec.every.microseconds if spec.every else None
    return Temporal(name, _instant(spec.at) if spec.at else None, every, spec.cron, str(spec.timezone or "UTC"))


def _instant(text: Text) -> int:
    """Microseconds since the epoch, hidden if a variable gave them."""
    instant = microseconds(text)
    return HiddenNumber(instant, text.shown) if text.hidden else instant


def _pattern(draft: Draft, event: CheckedEvent, spec: model.PatternEvent) -> Pattern:
    query = draft.checked.queries[event.query or str(spec.on)]
    return Pattern(
        event.name,
        query.name,
        str(spec.pattern),
        event.define,
        event.output,
        partition_of(spec, query.columns),
        spec.within.microseconds if spec.within else None,
        spec.skip,
        tuple(map(str, spec.id or query.default_id)),
        query.time or "",
        tuple(Column(str(name), kind) for name, kind in query.columns.items()),
        spec.pattern.shown,
    )
