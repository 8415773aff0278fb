"""Expressions over a whole batch: masks of primitive events and outputs, without Spark and without compiling.

Results are Spark's in non-ANSI mode: three-valued logic, integers that overflow, null for a division by zero, NaN equal
to itself and greater than all other numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estream.event import vector_calls as calls
from estream.event.vector import Flags, Vector, constant, from_arrow, to_arrow
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation, walk
from estream.spec.expression_text import to_text
from estream.spec.types import BOOLEAN, DataType

_FLIPPED = {">": "<", ">=": "<="}


def evaluate(expression: Expression, columns: Mapping[tuple[str | None, str], Any], length: int | None = None) -> Any:
    """The expression for every row, as an Arrow array of its type.

    `columns` are Arrow arrays by (event, name); the expression is typed and has no aggregates. `length` is the number
    of rows where there may be no column to tell it.
    """
    for part in walk(expression):
        if isinstance(part, Aggregate):
            raise ValueError(f"'{to_text(part)}' is an aggregate: give its values as a column")
        if not part.type.is_known:
            raise ValueError(f"'{to_text(part)}' has no type: check it against the columns first")
    rows = len(next(iter(columns.values()))) if length is None else length
    with np.errstate(all="ignore"):
        return to_arrow(_Batch(columns, rows).evaluate(expression), expression.type)


class _Batch:
    """The columns of one batch, and every part of the expression that was worked out."""

    def __init__(self, columns: Mapping[tuple[str | None, str], Any], length: int) -> None:
        self.columns, self.length = columns, length
        self.known: dict[Expression, Vector] = {}

    def evaluate(self, expression: Expression) -> Vector:
        if expression not in self.known:
            self.known[expression] = self.evaluated(expression)
        return self.known[expression]

    def evaluated(self, expression: Expression) -> Vector:
        match expression:
            case Literal(value, kind):
                return constant(value, kind, self.length)
            case Attribute(event, name, kind):
                return from_arrow(self.columns[event, name], kind)
            case Operation():
                return _operation(expression, [self.evaluate(operand) for operand in expression.operands])
        raise TypeError(type(expression).__name__)


def _operation(operation: Operation, operands: Sequence[Vector]) -> Vector:
    kind = operation.operands[0].type
    match operation.name:
        case "and" | "or":
            return reduce(_and if operation.name == "and" else _or, operands)
        case "not":
            (only,) = operands
            return Vector(~(only.values | only.nulls), only.nulls)
        case "is_null":
            return _always(operands[0].nulls)
        case "isnan":
            return _always(np.isnan(operands[0].values) & ~operands[0].nulls)
        case "=" | "<>" | "<" | "<=" | ">" | ">=":
            return _compare(operation.name, kind, operands[0], operands[1])
        case "<=>":
            same = _compare("=", kind, operands[0], operands[1])
            return _always(same.values | (operands[0].nulls & operands[1].nulls))
        case "between":
            value, low, high = operands
            return _and(_compare(">=", kind, value, low), _compare("<=", kind, value, high))
        case "in":
            value, *items = operands
            return reduce(_or, [_compare("=", kind, value, item) for item in items])
        case "case":
            *branches, otherwise = operands
            tests = [test.values for test in branches[::2]]
            return _chosen(operation.type, list(zip(tests, branches[1::2], strict=True)), otherwise)
        case "coalesce":
            return _chosen(operation.type, [(~operand.nulls, operand) for operand in operands[:-1]], operands[-1])
        case "greatest" | "least":
            return _extreme(operation, operands)
    return calls.call(operation, operands)


def _always(values: Flags) -> Vector:
    return Vector(values, np.zeros(len(values), np.bool_))


def _and(left: Vector, right: Vector) -> Vector:
    nulls = (left.nulls & (right.nulls | right.values)) | (right.nulls & left.values)
    return Vector(left.values & right.values, nulls)


def _or(left: Vector, right: Vector) -> Vector:
    values = left.values | right.values
    return Vector(values, (left.nulls | right.nulls) & ~values)


def _compare(name: str, kind: DataType, left: Vector, right: Vector) -> Vector:
    if name in _FLIPPED:
        return _compare(_FLIPPED[name], kind, right, left)
    nulls = left.nulls | right.nulls
    truth = _text_order(name, left, right) if kind.name == "string" else _order(name, left.values, right.values)
    return Vector(truth & ~nulls, nulls)


def _order(name: str, left: Any, right: Any) -> Flags:
    """NaN is not equal to itself in IEEE's order, but it is in Spark's, and it is the greatest."""
    truth: Flags
    match name:
        case "=":
            truth = (left == right) | ((left != left) & (right != right))
        case "<>":
            truth = (left != right) & ((left == left) | (right == right))
        case "<":
            truth = (left < right) | ((left == left) & (right != right))
        case _:
            truth = (left <= right) | (right != right)
    return truth


def _text_order(name: str, left: Vector, right: Vector) -> Flags:
    compute = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal}[name]
    truth: Flags = compute(left.values, right.values).fill_null(False).to_numpy(zero_copy_only=False)
    return truth


def _chosen(kind: DataType, branches: Sequence[tuple[Flags, Vector]], otherwise: Vector) -> Vector:
    """For each row the value of the first branch whose test holds."""
    chosen = otherwise
    for test, value in reversed(branches):
        nulls = np.where(test, value.nulls, chosen.nulls)
        if kind.name == "string":
            chosen = Vector(pc.if_else(pa.array(np.ascontiguousarray(test)), value.values, chosen.values), nulls)
        else:
            chosen = Vector(np.where(test, value.values, chosen.values), nulls)
    return chosen


def _extreme(operation: Operation, operands: Sequence[Vector]) -> Vector:
    name = ">" if operation.name == "greatest" else "<"
    best = operands[0]
    for other in operands[1:]:
        better = _compare(name, operation.type, other, best).values | (best.nulls & ~other.nulls)
        best = _chosen(operation.type, [(better, other)], best)
    return best


def holds(mask: Expression, columns: Mapping[tuple[str | None, str], Any], length: int | None = None) -> Flags:
    """Which rows a mask lets through: those where it is true, neither false nor null."""
    if mask.type != BOOLEAN:
        return np.zeros(len(next(iter(columns.values()))) if length is None else length, np.bool_)
    flags: Flags = evaluate(mask, columns, length).fill_null(False).to_numpy(zero_copy_only=False)
    return flags
