"""Event expressions: the tree of `when`, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from estream.duration import format_duration

Span: TypeAlias = tuple[int, int]
Operator: TypeAlias = Literal["or", "and", ";", "not", "A", "A*", "P", "P*", "+", "absent", "times"]

RESERVED = frozenset({"or", "and", "not", "absent", "times"})
"""Words that no event may have as its name, in any case."""

_BINDING = {"or": 1, "and": 2, ";": 3, "+": 4}
_TIGHTEST = 5


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


def walk(expression: EventExpression) -> Iterator[EventExpression]:
    """Every sub-expression in the order of the text's operands, the whole first."""
    pending = [expression]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, Apply):
            pending.extend(reversed(current.operands))


def names(expression: EventExpression) -> tuple[str, ...]:
    """The events an expression names, each once, in the order of its operands."""
    return tuple(dict.fromkeys(part.name for part in walk(expression) if isinstance(part, Name)))


def depth(expression: EventExpression, named: Mapping[str, int] = {}) -> int:
    """How many operators stand one inside the other, with those of named events as far as they are given."""
    deepest, pending = 0, [(expression, 0)]
    while pending:
        current, level = pending.pop()
        deepest = max(deepest, level + (named.get(current.name, 0) if isinstance(current, Name) else 0))
        if isinstance(current, Apply):
            pending.extend((operand, level + 1) for operand in current.operands)
    return deepest


def to_text(expression: EventExpression) -> str:
    """The expression as a user would write it, with no parentheses but those it needs."""
    if isinstance(expression, Name):
        return expression.name
    operator, parts = expression.operator, expression.operands
    if operator in _BINDING:
        return _infix(expression)
    if operator == "not":
        initiator, negated, terminator = map(to_text, parts)
        return f"not({negated})[{initiator}, {terminator}]"
    if operator == "times":
        return f"times({expression.count}, {to_text(parts[0])})"
    words = [to_text(part) for part in parts]
    if expression.duration is not None:
        words.insert(1 if operator in ("P", "P*") else 2, format_duration(expression.duration))
    return f"{operator}({', '.join(words)})"


def _infix(expression: Apply) -> str:
    binding = _BINDING[expression.operator]
    left = _bracketed(expression.operands[0], binding)
    if expression.operator == "+":
        return f"{left} + {format_duration(expression.duration or 0)}"
    return f"{left} {expression.operator} {_bracketed(expression.operands[1], binding + 1)}"


def _bracketed(expression: EventExpression, least: int) -> str:
    binding = _TIGHTEST if isinstance(expression, Name) else _BINDING.get(expression.operator, _TIGHTEST)
    return to_text(expression) if binding >= least else f"({to_text(expression)})"
