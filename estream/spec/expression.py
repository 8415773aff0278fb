"""Expressions as EStream keeps them: a small typed tree, the same for masks, conditions, `where`, `define`, `output`.

`spec.expression_parser` makes it from text, `spec.type_check` checks it against the columns in scope, three compilers
turn it into a Spark column (`stream.column`), an Arrow evaluation (`event.evaluate`) and numba source (`event.scalar`).
Spans say where a node was read and take no part in equality: two expressions are equal when they mean the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from estream.spec.types import UNKNOWN, DataType

Span: TypeAlias = tuple[int, int]
"""Offsets of the first character and after the last one, in the text the expression was read from."""

Value: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; intervals and timestamps are microseconds, dates are days since the epoch."""

    value: Value
    type: DataType
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Attribute:
    """`name` of the row in scope, or `event.name` of a constituent; on its own an event's name (`count(E)`)."""

    event: str | None
    name: str
    type: DataType = UNKNOWN
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or scalar function applied to its operands.

    `name` is one of: `+ - * / % = <> < <= > >= <=> and or not neg is_null between like in case cast` or a function's
    lower-case name. `and` and `or` have two operands or more and none that is itself an `and` (an `or`). `case` has
    operands (condition, value, condition, value, ..., otherwise); `cast` casts to `type`; `like` has a constant pattern
    and, where it is not a backslash, a constant escape character.
    """

    name: str
    operands: tuple[Expression, ...]
    type: DataType = UNKNOWN
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`first last min max sum avg count collect delta` over the occurrences of a leaf or the rows of a match or window.

    `count()` of a pattern has no operand; `count(E)` has `Attribute(None, "E")`.
    """

    name: str
    operand: Expression | None
    type: DataType = UNKNOWN
    span: Span = field(default=(0, 0), compare=False)


Expression: TypeAlias = Literal | Attribute | Operation | Aggregate


def operands_of(expression: Expression) -> tuple[Expression, ...]:
    """What an expression is directly made of."""
    if isinstance(expression, Operation):
        return expression.operands
    if isinstance(expression, Aggregate) and expression.operand is not None:
        return (expression.operand,)
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it, from left to right, an operation before its operands."""
    yield expression
    for operand in operands_of(expression):
        yield from walk(operand)
