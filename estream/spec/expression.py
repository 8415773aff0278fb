"""Expressions as EStream keeps them: a small typed tree, the same for masks, conditions, `where`, `define`, `output`.

`spec.expression_parser` makes it from text, `spec.typing` checks it against the columns in scope, and three compilers
turn it into a Spark column (`stream.column`), an Arrow evaluation (`event.evaluate`) and numba source (`event.scalar`).
"""

from __future__ import annotations

from dataclasses import dataclass
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
    span: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class Attribute:
    """`name` of the row in scope, or `event.name` of a constituent; on its own an event's name (`count(E)`)."""

    event: str | None
    name: str
    type: DataType = UNKNOWN
    span: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or scalar function applied to its operands.

    `name` is one of: `+ - * / % = <> < <= > >= <=> and or not neg is_null like in case cast` or a function's lower-case
    name. `case` has operands (condition, value, condition, value, ..., otherwise); `cast` casts to `type`.
    """

    name: str
    operands: tuple[Expression, ...]
    type: DataType = UNKNOWN
    span: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`first last min max sum avg count collect delta` over the occurrences of a leaf, or the rows of a match or window.

    `count()` of a pattern has no operand; `count(E)` has `Attribute(None, "E")`.
    """

    name: str
    operand: Expression | None
    type: DataType = UNKNOWN
    span: Span = (0, 0)


Expression: TypeAlias = Literal | Attribute | Operation | Aggregate
