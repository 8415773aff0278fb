"""Small CEQ files for the passes: leaf events A to D with attributes k, v and name, temporal events T and U."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import pytest
import yaml

from estream.errors import Problem
from estream.plan.build import build
from estream.plan.model import Plan
from estream.spec import model
from estream.spec.checked import Checked, CheckedEvent, CheckedQuery, CheckedRule, Columns
from estream.spec.event_parser import parse_event
from estream.spec.expression import Expression
from estream.spec.expression_parser import parse_expression
from estream.spec.reader import parse_ceq
from estream.spec.type_check import Scope, check_types
from estream.spec.types import DataType
from estream.text import Text

Planned: TypeAlias = tuple[Plan, list[Problem]]
Parts: TypeAlias = Mapping[str, Mapping[str, object]]
Planner: TypeAlias = Callable[..., Planned]

STREAM = {
    "source": {"format": "memory"},
    "schema": {"ts": "timestamp", "n": "bigint", "k": "int", "v": "int", "name": "string"},
    "time": "ts",
}
LEAVES: dict[str, Mapping[str, object]] = {name: {"on": "S", "id": ["n"]} for name in "ABCD"}
TEMPORALS: dict[str, Mapping[str, object]] = {"T": {"every": "1 min"}, "U": {"every": "1 h"}}


def checked_of(events: Parts, rules: Parts) -> Checked:
    """The events and rules with their expressions typed, in the order given, which has to be that of use."""
    parts = {"streams": {"S": STREAM}, "events": {**LEAVES, **TEMPORALS, **events}, "rules": dict(rules)}
    parsed = parse_ceq(yaml.safe_dump(parts, sort_keys=False, width=10_000), "test.yaml", {})
    assert parsed.problems == ()
    ceq, columns = (
        parsed.ceq,
        {str(name): DataType(str(kind)) for name, kind in parsed.ceq.streams["S"].columns.items()},
    )
    done = {str(name): _event(str(name), event, columns) for name, event in ceq.events.items()}
    scope = Scope(events={name: event.columns for name, event in done.items()}, aggregates="leaves")
    return Checked(
        ceq,
        {"S": CheckedQuery("S", "stream", ceq.streams["S"], (), columns, "ts", False)},
        {name: replace(event, mask=_typed(getattr(event.spec, "mask", None), scope)) for name, event in done.items()},
        {str(name): CheckedRule(str(name), rule, _typed(rule.condition, scope)) for name, rule in ceq.rules.items()},
    )


def _event(name: str, spec: model.Event, columns: Columns) -> CheckedEvent:
    match spec:
        case model.CompositeEvent():
            return CheckedEvent(name, "composite", spec, when=parse_event(spec.when))
        case model.TemporalEvent():
            return CheckedEvent(name, "temporal", spec, columns={})
        case model.RaisedEvent():
            return CheckedEvent(name, "raised", spec, columns={a: DataType(str(t)) for a, t in spec.raised.items()})
        case model.PatternEvent():
            return CheckedEvent(name, "pattern", spec, "S", {str(column): columns[column] for column in spec.output})
        case model.PrimitiveEvent():
            return CheckedEvent(name, "primitive", spec, "S", columns)


def _typed(text: object, scope: Scope) -> Expression | None:
    if not isinstance(text, Text):
        return None
    typed, problems = check_types(parse_expression(text), scope, text)
    assert problems == []
    return typed


@pytest.fixture
def planned() -> Planner:
    """Gives the plan of some events and rules, and the problems found."""

    def plan(events: Parts, rules: Parts | None = None, observe: tuple[str, ...] = ()) -> Planned:
        return build(checked_of(events, rules or {}), observe)

    return plan
