"""Types of expressions by Spark's rules (non-ANSI), with every cast that Spark would add by itself written out.

The compilers that follow need no rules of their own: both sides of a comparison have one type, and so have the operands
of an arithmetic operation, the values of a `case` and the operands of `coalesce`. EStream is stricter than Spark in one
way: text is not compared with numbers. Decimals take part in operations as doubles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from estream.errors import Problem
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation, walk
from estream.spec.expression_text import to_text
from estream.spec.function_types import aggregate_type, call
from estream.spec.functions import WINDOW_AGGREGATES
from estream.spec.type_rules import Mismatch, as_number, cast, castable, same_type
from estream.spec.types import BIGINT, BOOLEAN, DOUBLE, INTERVAL, TIMESTAMP, UNKNOWN, DataType, spelling
from estream.suggest import did_you_mean, listed
from estream.text import Text

_COMPARISONS = {"=", "<>", "<", "<=", ">", ">=", "<=>", "between", "in"}
_ORDERED = {"boolean", "string", "date", "timestamp", "interval", "void"}


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may name, and the words for its messages.

    None in the place of columns means that they are not known: then every name is right. Names of columns are
    resolved as in Spark, without regard to case; names of events are not.
    """

    columns: Mapping[str, DataType] | None = field(default_factory=dict)
    """What a name without an event may be."""
    events: Mapping[str, Mapping[str, DataType] | None] = field(default_factory=dict)
    aggregates: OneOf["none", "leaves", "rows", "window"] = "none"
    """`leaves`: over the occurrences of one event; `rows`: over those of a match; `window`: over those of a window."""
    subject: str = "expression"
    """Begins every message: "event 'Spike': mask"."""
    source: str = "the row"
    """Whose columns they are: "query 'vitals'"."""


def check_types(expression: Expression, scope: Scope, text: Text) -> tuple[Expression, list[Problem]]:
    """The expression with types, declared spellings and casts, and what is wrong with it.

    A part that is wrong has the type `unknown`, which everything is allowed with, so that each problem is said once.
    """
    checker = _Checker(scope, text)
    return checker.check(expression), checker.problems


def require_boolean(expression: Expression, scope: Scope, text: Text) -> list[Problem]:
    """A problem when a typed mask, condition or predicate is not a truth value."""
    if expression.type.name in ("boolean", "void", "unknown"):
        return []
    return [text.problem(f"{scope.subject} is {expression.type}, not boolean", *_place(expression))]


def _place(expression: Expression) -> tuple[int, int]:
    start, end = expression.span
    return start, end - start


class _Checker:
    def __init__(self, scope: Scope, text: Text) -> None:
        self.scope, self.text = scope, text
        self.problems: list[Problem] = []
        self.inside_aggregate = False

    def check(self, expression: Expression) -> Expression:
        match expression:
            case Literal():
                return expression
            case Attribute():
                return self.attribute(expression)
            case Aggregate():
                return self.aggregate(expression)
            case Operation():
                operands = tuple(self.check(operand) for operand in expression.operands)
                try:
                    return self.operation(replace(expression, operands=operands))
                except Mismatch as mismatch:
                    self.note(expression, f"{mismatch} in '{to_text(expression)}'")
                    return replace(expression, operands=operands, type=_given_up(expression))

    def note(self, expression: Expression, message: str, hint: str | None = None) -> None:
        start, length = _place(expression)
        self.problems.append(self.text.problem(f"{self.scope.subject} {message}", start, length, hint))

    def attribute(self, attribute: Attribute) -> Attribute:
        if attribute.event is None:
            if not self.scope.columns and self.scope.columns is not None and self.scope.events:
                known = listed(self.scope.events)
                self.note(
                    attribute, f"uses '{attribute.name}' of no event; write Event.{attribute.name}, events are {known}"
                )
                return attribute
            return self.column(attribute, attribute.name, self.scope.columns, self.scope.source)
        if self.inside_aggregate and self.scope.aggregates == "window":
            shown = f"{attribute.event}.{attribute.name}"
            self.note(attribute, f"uses '{shown}' inside an aggregate, which sees the columns of rows")
            return attribute
        if attribute.event not in self.scope.events:
            self.unknown_event(attribute, attribute.event)
            return attribute
        columns = self.scope.events[attribute.event]
        return self.column(attribute, to_text(attribute), columns, f"event '{attribute.event}'")

    def column(
        self, attribute: Attribute, shown: str, columns: Mapping[str, DataType] | None, source: str
    ) -> Attribute:
        if columns is None:
            return attribute
        name = spelling(attribute.name, columns)
        if name is None:
            has = listed(columns) or "no columns"
            self.note(attribute, f"uses '{shown}'; {source} has {has}", did_you_mean(attribute.name, columns) or None)
            return attribute
        return replace(attribute, name=name, type=columns[name])

    def unknown_event(self, expression: Expression, name: str) -> None:
        if self.scope.events:
            known = f"events are {listed(self.scope.events)}"
        else:
            known = f"names of {self.scope.source} stand alone"
        self.note(expression, f"uses event '{name}'; {known}", did_you_mean(name, self.scope.events) or None)

    def aggregate(self, aggregate: Aggregate) -> Expression:
        name, allowed = aggregate.name, self.scope.aggregates
        if allowed == "none":
            self.note(aggregate, f"uses the aggregate {name}; aggregates are not allowed here")
        elif self.inside_aggregate:
            self.note(aggregate, f"has the aggregate {name} inside an aggregate")
        elif allowed == "leaves" and (aggregate.operand is None or name == "delta"):
            what = "count() of no event; write count(Event)" if name == "count" else "delta; only a pattern has it"
            self.note(aggregate, f"uses {what}")
        elif allowed == "window" and name == "delta":
            self.note(aggregate, "uses delta; only a pattern has it")
        elif allowed != "window" and name in WINDOW_AGGREGATES:
            self.note(aggregate, f"uses {name}; only a window has it")
        else:
            return self.allowed_aggregate(aggregate)
        return aggregate

    def allowed_aggregate(self, aggregate: Aggregate) -> Expression:
        operand = aggregate.operand
        if operand is None:
            return replace(aggregate, type=BIGINT)
        if self.scope.aggregates == "leaves" and aggregate.name == "count" and isinstance(operand, Attribute):
            if operand.event is None and operand.name in self.scope.events:
                return replace(aggregate, type=BIGINT)
            if operand.event is None:
                self.unknown_event(operand, operand.name)
                return replace(aggregate, type=BIGINT)
        self.inside_aggregate = True
        checked = self.check(operand)
        self.inside_aggregate = False
        self.one_event(aggregate, checked)
        try:
            return aggregate_type(aggregate, checked)
        except Mismatch as mismatch:
            self.note(aggregate, f"{mismatch} in '{to_text(aggregate)}'")
            return replace(aggregate, operand=checked)

    def one_event(self, aggregate: Aggregate, operand: Expression) -> None:
        named = {part.event for part in walk(operand) if isinstance(part, Attribute)}
        if self.scope.aggregates == "leaves" and len(named) != 1:
            self.note(aggregate, f"has {aggregate.name} over {len(named)} events; an aggregate is over one event")

    def operation(self, operation: Operation) -> Operation:
        name, operands = operation.name, operation.operands
        if name in _COMPARISONS:
            return replace(operation, operands=_comparable(operands), type=BOOLEAN)
        match name:
            case "and" | "or" | "not":
                return replace(operation, operands=tuple(map(_truth, operands)), type=BOOLEAN)
            case "is_null":
                return replace(operation, type=BOOLEAN)
            case "like":
                if operands[0].type.name not in ("string", "void", "unknown"):
                    raise Mismatch(f"uses LIKE on {operands[0].type}")
                return replace(operation, operands=(cast(operands[0], operands[1].type), *operands[1:]), type=BOOLEAN)
            case "case":
                return _case(operation)
            case "cast":
                if not castable(operands[0].type, operation.type):
                    raise Mismatch(f"casts {operands[0].type} to {operation.type}, which EStream does not do")
                return operation
            case "+" | "-" | "*" | "/" | "%" | "neg":
                return _arithmetic(operation)
        return call(operation)


def _given_up(expression: Operation) -> DataType:
    return BOOLEAN if expression.name in {*_COMPARISONS, "and", "or", "not", "like"} else UNKNOWN


def _truth(operand: Expression) -> Expression:
    if operand.type.name not in ("boolean", "void", "unknown"):
        raise Mismatch(f"uses {operand.type} '{to_text(operand)}' as a truth value")
    return cast(operand, BOOLEAN)


def _comparable(operands: tuple[Expression, ...]) -> tuple[Expression, ...]:
    unified = same_type(operands, "compares")
    kind = unified[0].type
    if kind.is_known and not kind.is_number and kind.name not in _ORDERED:
        raise Mismatch(f"compares {kind}, which has no order,")
    return unified


def _case(operation: Operation) -> Operation:
    *branches, otherwise = operation.operands
    tests = [_truth(test) for test in branches[::2]]
    values = same_type((*branches[1::2], otherwise), "mixes")
    paired = [part for pair in zip(tests, values[:-1], strict=True) for part in pair]
    return replace(operation, operands=(*paired, values[-1]), type=values[0].type)


def _arithmetic(operation: Operation) -> Operation:
    kinds = [operand.type.name for operand in operation.operands]
    if "unknown" in kinds:
        return operation
    if {"timestamp", "date", "interval"} & set(kinds):
        return _time_arithmetic(operation, kinds)
    if operation.name == "/":
        operands = tuple(cast(as_number(operand, "calculates with"), DOUBLE) for operand in operation.operands)
        return replace(operation, operands=operands, type=DOUBLE)
    operands = same_type(
        tuple(as_number(operand, "calculates with") for operand in operation.operands), "calculates with"
    )
    if operands[0].type.name == "void":
        operands = tuple(cast(operand, DOUBLE) for operand in operands)
    return replace(operation, operands=operands, type=operands[0].type)


def _time_arithmetic(operation: Operation, kinds: list[str]) -> Operation:
    """Moments and intervals: a difference of moments is an interval, a moment moved by an interval is a moment."""
    match operation.name, *kinds:
        case ("neg", "interval") | ("+" | "-", "interval", "interval"):
            return replace(operation, type=INTERVAL)
        case ("+" | "-", "timestamp", "interval") | ("+", "interval", "timestamp"):
            return replace(operation, type=TIMESTAMP)
        case ("-", "timestamp" | "date", "timestamp" | "date"):
            operands = tuple(cast(operand, TIMESTAMP) for operand in operation.operands)
            return replace(operation, operands=operands, type=INTERVAL)
    shown = "-" if operation.name == "neg" else operation.name
    raise Mismatch(f"has no '{shown}' for {' and '.join(kinds)}")
