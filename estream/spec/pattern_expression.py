"""Expressions of patterns: what of them concerns the current row only, and what the partial match so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from estream.spec.compilable import refusals
from estream.spec.expression import Aggregate, Expression, Operation, walk
from estream.spec.expression_text import to_text
from estream.text import Text

Lift: TypeAlias = Callable[[Expression], Expression]


def is_of_row(expression: Expression) -> bool:
    """Whether it asks of the current row only."""
    return not any(isinstance(part, Aggregate) for part in walk(expression))


def without_delta(expression: Expression) -> Expression:
    """The expression with `delta(x)` written as `x - first(x)`."""
    match expression:
        case Aggregate(name="delta", operand=operand) if operand is not None:
            first = Aggregate("first", operand, operand.type, expression.span)
            return Operation("-", (operand, first), expression.type, expression.span)
        case Operation():
            return replace(expression, operands=tuple(map(without_delta, expression.operands)))
    return expression


def with_rows_lifted(expression: Expression, lift: Lift) -> Expression:
    """The expression with all that the kernel does not do itself lifted out of it: what is lifted becomes a column.

    Lifted are the operands of aggregates that are no plain attribute, and parts that ask of the current row only and do
    not compile, such as functions of text.
    """
    if is_of_row(expression):
        return lift(expression) if refusals(expression, Text(to_text(expression))) else expression
    match expression:
        case Aggregate(operand=Operation() as operand):
            return replace(expression, operand=lift(operand))
        case Operation():
            return replace(
                expression, operands=tuple(with_rows_lifted(operand, lift) for operand in expression.operands)
            )
    return expression
