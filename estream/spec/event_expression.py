"""Event expressions: the tree of `when`, from text and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Span: TypeAlias = tuple[int, int]
Operator: TypeAlias = Literal["or", "and", ";", "not", "A", "A*", "P", "P*", "+", "absent", "times"]


@dataclass(frozen=True, slots=True)
class Name:
    """A primitive or composite event defined elsewhere."""

    name: str
    span: Span = (0, 0)


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator over its operands, in the order of the roles: (initiator, middle or negation, terminator).

    `not(N)[I, T]` has operands (I, N, T); `absent(I, N, d)` has (I, N); `P(I, d, T)` has (I, T); `E + d` and
    `times(n, E)` have (E,). `duration` is in microseconds.
    """

    operator: Operator
    operands: tuple[EventExpression, ...]
    duration: int | None = None
    count: int | None = None
    span: Span = (0, 0)


EventExpression: TypeAlias = Name | Apply
