"""First pass: which events are wanted in which context, and every composite event as a tree of named events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from estream.plan.draft import Definition, Draft, Leaves, Part, Use, Variant
from estream.plan.leaves import leaves
from estream.plan.model import Context, Subscription
from estream.spec.checked import Checked, CheckedEvent
from estream.spec.event_expression import EventExpression, Name
from estream.spec.model import CompositeEvent


def resolve(draft: Draft) -> Draft:
    """Definitions of all composite events, with a variant for each context a rule asks for, and the subscriptions."""
    wanted = tuple(dict.fromkeys(_subscriptions(draft.checked, draft.observe)))
    definitions: dict[Variant, Definition] = {}
    known: dict[str, Leaves] = {}
    for event in draft.checked.events.values():
        if event.when is None:
            only = (event.name,)
            known[event.name] = Leaves(only, only, only, event.kind == "temporal")
            continue
        root = _root(event.when)
        known[event.name] = leaves(root, known)
        spec = cast(CompositeEvent, event.spec)
        for context in dict.fromkeys([None, *(each.context for each in wanted if each.event == event.name)]):
            definitions[event.name, context] = Definition(event, spec, root, context or spec.context or "recent")
    return replace(draft, definitions=definitions, leaves_of=known, wanted=wanted)


def _root(expression: EventExpression) -> Part:
    tree = _tree(expression)
    return tree if isinstance(tree, Part) else Part("or", (tree,), span=tree.span)


def _tree(expression: EventExpression) -> Part | Use:
    if isinstance(expression, Name):
        return Use(expression.name, expression.span)
    operands = tuple(_tree(operand) for operand in expression.operands)
    return Part(expression.operator, operands, expression.duration, expression.count, expression.span)


def _subscriptions(checked: Checked, observe: tuple[str, ...]) -> Iterator[Subscription]:
    """What rules, publications and the user listen to; with no rule at all, every event that detects something.

    Where all events are primitive, these are all of them: a file that is run must find something.
    """
    for rule in checked.rules.values():
        event = checked.events.get(rule.spec.on)
        if event is not None:
            yield _wanted(event, rule.spec.context if event.kind == "composite" else None)
    detected = {event.kind for event in checked.events.values()} & {"composite", "pattern"} or {"primitive"}
    for event in checked.events.values():
        detects = not checked.rules and event.kind in detected
        if event.spec.publish or detects or event.name in observe:
            yield _wanted(event, None)


def _wanted(event: CheckedEvent, context: Context | None) -> Subscription:
    channel = str(event.spec.publish) if event.spec.publish and context is None else None
    return Subscription(event.name, -1, context, channel)
