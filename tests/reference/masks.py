"""Masks: SQL's null logic, and where each conjunct is asked (docs/semantics.md, sections 2 and 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from estream.spec.event_expression import Apply, EventExpression, Name
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation
from tests.reference.occurrences import Primitive

WITHOUT_INITIATOR = ("or", "+", "times")


@dataclass(frozen=True)
class Conjuncts:
    """What a node asks: of one operand alone, of the initiator with another operand, of the finished occurrence."""

    alone: dict[int, list[Expression]] = field(default_factory=dict)
    paired: dict[int, list[Expression]] = field(default_factory=dict)
    finished: list[Expression] = field(default_factory=list)


def holds(conditions: Sequence[Expression], constituents: Sequence[Primitive]) -> bool:
    """Whether all conditions are true; null is not true."""
    return all(evaluate(condition, constituents) is True for condition in conditions)


def evaluate(expression: Expression, constituents: Sequence[Primitive]) -> Any:
    """The value of an expression over the constituents of an occurrence, or of a pair."""
    match expression:
        case Literal(value=value):
            return value
        case Attribute(event=event, name=name):
            found = [primitive for primitive in constituents if event in (None, primitive.event)]
            return found[-1].attrs.get(name) if found else None
        case Operation(name=name, operands=operands):
            return combine(name, [evaluate(operand, constituents) for operand in operands])
        case Aggregate(name="count", operand=Attribute(event=None, name=event)):
            return sum(primitive.event == event for primitive in constituents)
        case Aggregate(name=name, operand=operand) if operand is not None:
            (leaf,) = leaves_named(operand)
            return aggregate(name, [evaluate(operand, [one]) for one in constituents if one.event == leaf])
    raise ValueError(f"{expression} has no value")


def combine(name: str, values: list[Any]) -> Any:
    """An operator of values that may be null."""
    if name in ("and", "or"):
        return connective(name, values)
    if name == "is_null":
        return values[0] is None
    return None if None in values else apply(name, *values)


def connective(name: str, values: list[Any]) -> bool | None:
    """`and`, `or` of true, false and null."""
    deciding = name == "or"
    if deciding in values:
        return deciding
    return None if None in values else not deciding


def apply(name: str, *values: Any) -> Any:
    """An operator of values that are not null."""
    if name == "not":
        return not values[0]
    if name == "neg":
        return wrapped(-values[0])
    if name == "/":
        return None if values[1] == 0 else float(values[0]) / float(values[1])
    if name in ARITHMETIC:
        return wrapped(ARITHMETIC[name](*values))
    return COMPARISONS[name](*(ordered(value) for value in values))


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda x, y: x == y,
    "<>": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}


def wrapped(value: Any) -> Any:
    """Integers overflow as 64 bits do."""
    return (value + 2**63) % 2**64 - 2**63 if isinstance(value, int) else value


def ordered(value: Any) -> tuple[bool, Any]:
    """Spark's order of numbers: NaN equals itself and is greater than all others."""
    return (True, 0) if isinstance(value, float) and math.isnan(value) else (False, value)


def aggregate(name: str, values: list[Any]) -> Any:
    """An aggregate of the values of all occurrences; `first`, `last` and `collect` see nulls too."""
    present = [value for value in values if value is not None]
    match name:
        case "collect":
            return values
        case "count":
            return len(present)
        case "first" | "last":
            return values[0 if name == "first" else -1] if values else None
        case "min" | "max" if present:
            return (min if name == "min" else max)(present, key=ordered)
        case "sum" if present:
            return wrapped(sum(present))
        case "avg" if present:
            return sum(float(value) for value in present) / len(present)
    return None


def split(mask: Expression) -> list[Expression]:
    """The conjuncts of a mask: it is cut at its top-level ANDs, whatever the parentheses."""
    if isinstance(mask, Operation) and mask.name == "and":
        return [conjunct for operand in mask.operands for conjunct in split(operand)]
    return [mask]


def parts(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it."""
    yield expression
    match expression:
        case Operation(operands=operands):
            for operand in operands:
                yield from parts(operand)
        case Aggregate(operand=operand) if operand is not None:
            yield from parts(operand)


def leaves_named(expression: Expression) -> set[str]:
    """The leaf events a conjunct names; in `count(E)` the leaf stands alone."""
    return {part.event or part.name for part in parts(expression) if isinstance(part, Attribute)}


def place(mask: Expression | None, top: Apply, defined: Mapping[str, EventExpression]) -> dict[int, Conjuncts]:
    """What each node of an expression asks, by the node's `id()`; `defined` has the composite events' expressions."""
    asked: dict[int, Conjuncts] = {}
    for conjunct in split(mask) if mask is not None else []:
        named = leaves_named(conjunct)
        node = lowest(named, top, defined) if named else top
        positions = [at for at, operand in enumerate(node.operands) if named & leaves_below(operand, defined)]
        here = asked.setdefault(id(node), Conjuncts())
        if not named or any(isinstance(part, Aggregate) for part in parts(conjunct)):
            here.finished.append(conjunct)
        elif len(positions) == 1:
            here.alone.setdefault(positions[0], []).append(conjunct)
        elif len(positions) == 2 and positions[0] == 0 and node.operator not in WITHOUT_INITIATOR:
            here.paired.setdefault(positions[1], []).append(conjunct)
        else:
            here.finished.append(conjunct)
    return asked


def lowest(named: set[str], node: Apply, defined: Mapping[str, EventExpression]) -> Apply:
    """The lowest node below which these leaves are, in all their places; named events are not entered."""
    having = [operand for operand in node.operands if named & leaves_below(operand, defined)]
    if len(having) == 1 and isinstance(having[0], Apply):
        return lowest(named, having[0], defined)
    return node


def leaves_below(expression: EventExpression, defined: Mapping[str, EventExpression]) -> set[str]:
    """The primitive events an expression is made of, those of named events too."""
    if isinstance(expression, Apply):
        return set().union(*(leaves_below(operand, defined) for operand in expression.operands))
    if isinstance(expression, Name) and expression.name in defined:
        return leaves_below(defined[expression.name], defined)
    return {expression.name}
