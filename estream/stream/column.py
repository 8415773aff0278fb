"""Expressions as Spark columns, built with the API: no text of a user is ever read by Spark as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import reduce
from operator import add, and_, eq, ge, gt, le, lt, mod, mul, ne, or_, sub, truediv
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation
from estream.spec.expression_text import to_text

_INFIX: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "/": truediv,
    "%": mod,
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}
_CALLS: dict[str, Callable[..., Column]] = {
    "abs": F.abs,
    "floor": F.floor,
    "ceil": F.ceil,
    "sqrt": F.sqrt,
    "exp": F.exp,
    "ln": F.ln,
    "log10": F.log10,
    "power": F.pow,
    "sign": F.signum,
    "isnan": F.isnan,
    "greatest": F.greatest,
    "least": F.least,
    "coalesce": F.coalesce,
    "upper": F.upper,
    "lower": F.lower,
    "length": F.length,
    "trim": F.trim,
    "ltrim": F.ltrim,
    "rtrim": F.rtrim,
    "substring": F.substr,
    "concat": F.concat,
    "startswith": F.startswith,
    "endswith": F.endswith,
    "contains": F.contains,
    "year": F.year,
    "month": F.month,
    "day": F.dayofmonth,
    "dayofweek": F.dayofweek,
    "hour": F.hour,
    "minute": F.minute,
    "second": F.second,
    "unix_seconds": F.unix_seconds,
    "unix_millis": F.unix_millis,
    "unix_micros": F.unix_micros,
}


def to_column(expression: Expression, resolve: Callable[[Attribute], Column]) -> Column:
    """The column of a typed expression without aggregates; `resolve` gives the column of an attribute."""
    match expression:
        case Literal():
            return _literal(expression)
        case Attribute():
            return resolve(expression)
        case Aggregate():
            raise ValueError(f"'{to_text(expression)}' is no column of one row")
        case Operation():
            return _operation(expression, [to_column(operand, resolve) for operand in expression.operands])


def _literal(literal: Literal) -> Column:
    value, kind = literal.value, literal.type.name
    if value is None or isinstance(value, bool | str):
        return F.lit(value) if kind in ("void", "string", "boolean") and value is not None else _null(kind)
    if kind == "timestamp":
        return F.timestamp_micros(F.lit(value).cast("bigint"))
    if kind == "date":
        return F.lit(date(1970, 1, 1) + timedelta(days=value))
    if kind == "interval":
        return F.lit(timedelta(microseconds=value))
    return F.lit(value).cast(str(literal.type))


def _null(kind: str) -> Column:
    name = {"interval": "interval day to second"}.get(kind, kind)
    return F.lit(None) if kind == "void" else F.lit(None).cast(name)


def _operation(operation: Operation, operands: Sequence[Column]) -> Column:
    name, first = operation.name, operands[0]
    if name in _INFIX:
        return _column(_INFIX[name](first, operands[1]))
    if name in _CALLS:
        return _CALLS[name](*operands)
    match name:
        case "<=>":
            return first.eqNullSafe(operands[1])
        case "and" | "or":
            return reduce(and_ if name == "and" else or_, operands)
        case "not":
            return ~first
        case "neg":
            return -first
        case "is_null":
            return first.isNull()
        case "between":
            return first.between(operands[1], operands[2])
        case "in":
            return first.isin(*operands[1:])
        case "like":
            return F.like(*operands)
        case "cast":
            return first.cast(str(operation.type))
        case "round":
            return F.round(first, operands[1] if len(operands) > 1 else 0)
        case "case":
            return _case(operands)
    raise ValueError(f"no Spark column is known for '{name}'")


def _column(made: Any) -> Column:
    column: Column = made
    return column


def _case(operands: Sequence[Column]) -> Column:
    *branches, otherwise = operands
    (test, value), *others = zip(branches[::2], branches[1::2], strict=True)
    chosen = F.when(test, value)
    for test, value in others:
        chosen = chosen.when(test, value)
    return chosen.otherwise(otherwise)
