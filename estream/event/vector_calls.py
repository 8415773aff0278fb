"""Arithmetic, casts and functions over a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from estream.event import text_calls
from estream.event.vector import Vector, numpy_type
from estream.spec.expression import Literal, Operation

_DAY = 86_400_000_000
_MAX_SECONDS = (2**63 - 1) // 1_000_000
_NUMERIC: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "ln": np.log,
    "log10": np.log10,
    "sign": np.sign,
    "hour": lambda moment: moment // 3_600_000_000 % 24,
    "minute": lambda moment: moment // 60_000_000 % 60,
    "second": lambda moment: moment // 1_000_000 % 60,
    "unix_seconds": lambda moment: moment // 1_000_000,
    "unix_millis": lambda moment: moment // 1_000,
    "unix_micros": lambda moment: moment,
}
_MORE_NULLS: dict[str, Callable[..., Any]] = {
    "/": lambda _, divisor: divisor == 0,
    "%": lambda _, divisor: divisor == 0,
    "ln": lambda value: value <= 0,
    "log10": lambda value: value <= 0,
}


def call(operation: Operation, operands: Sequence[Vector]) -> Vector:
    """An operation that is null where an operand is, and in the cases where Spark has no value."""
    kinds = {operand.type.name for operand in operation.operands}
    if "string" in kinds or operation.type.name == "string":
        return text_calls.call(operation, operands)
    values = [operand.values for operand in operands]
    nulls = np.logical_or.reduce([operand.nulls for operand in operands])
    if operation.name in _MORE_NULLS:
        nulls = nulls | _MORE_NULLS[operation.name](*values)
    result = np.asarray(_value(operation, values)).astype(numpy_type(operation.type), copy=False)
    return Vector(np.where(nulls, result.dtype.type(0), result), nulls)


def _value(operation: Operation, values: Sequence[Any]) -> Any:
    kind = operation.operands[0].type.name
    match operation.name:
        case "cast":
            return _cast(kind, operation.type.name, values[0])
        case "floor" | "ceil":
            return _saturated(np.floor(values[0]) if operation.name == "floor" else np.ceil(values[0]), 63)
        case "round":
            return _round(operation, values[0]) if kind in ("float", "double") else values[0]
        case "power":
            return _power(values[0], values[1])
        case "%":
            # The least integer by -1 overflows in C; every remainder by -1 is zero.
            divisor = values[1] if kind in ("float", "double") else np.where(values[1] == -1, 1, values[1])
            return np.fmod(values[0], np.where(divisor == 0, 1, divisor).astype(values[1].dtype))
        case "year" | "month" | "day" | "dayofweek":
            return _calendar(operation.name, values[0] // _DAY if kind == "timestamp" else values[0])
    return _NUMERIC[operation.name](*values)


def _cast(source: str, target: str, values: Any) -> Any:
    match source, target:
        case (_, "boolean"):
            return values != 0
        case ("float" | "double", "tinyint" | "smallint" | "int" | "bigint"):
            return _saturated(values.astype(np.float64), 63 if target == "bigint" else 31)
        case ("timestamp", "bigint"):
            return values // 1_000_000
        case ("timestamp", "double"):
            return values / 1_000_000.0
        case ("timestamp", "date"):
            return values // _DAY
        case ("date", "timestamp"):
            return values.astype(np.int64) * _DAY
        case ("decimal", _):
            return _cast("double", target, np.array(values.cast(pa.float64()).fill_null(0.0)))
        case (_, "timestamp"):
            seconds = values.astype(np.int64)
            limits = np.where(seconds > 0, np.int64(2**63 - 1), np.int64(-(2**63)))
            return np.where(np.abs(seconds.astype(np.float64)) > _MAX_SECONDS, limits, seconds * 1_000_000)
    return values


def _saturated(values: Any, bits: int) -> Any:
    """Real numbers as integers: cut off, held at the limits, zero for NaN."""
    limit = float(2**bits)
    inside = (values > -limit) & (values < limit)
    whole = np.where(inside, values, 0.0).astype(np.int64)
    return np.where(values >= limit, np.int64(2**bits - 1), np.where(values <= -limit, np.int64(-(2**bits)), whole))


def _power(base: Any, exponent: Any) -> Any:
    """Java's power of 1 to an infinite or NaN exponent is NaN, C's is 1.

    `np.power` takes a constant exponent of 0.5 for the square root, which is NaN at minus infinity; this one does not.
    """
    undefined = np.isnan(exponent) | ((np.abs(base) == 1) & np.isinf(exponent))
    return np.where(undefined, np.nan, np.float_power(base, exponent))


def _round(operation: Operation, values: Any) -> Any:
    scale = operation.operands[1] if len(operation.operands) > 1 else None
    digits = int(scale.value or 0) if isinstance(scale, Literal) else 0
    if digits == 0:
        whole = np.trunc(values)
        return whole + np.where(np.abs(values - whole) >= 0.5, np.copysign(1.0, values), 0.0)
    return np.array([_round_decimal(value, digits) for value in values])


def _round_decimal(value: Any, digits: int) -> float:
    """Half up on the shortest decimal text of the number, as Spark does."""
    if not np.isfinite(value):
        return float(value)
    exact = Decimal(str(value))
    exponent = exact.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent <= digits:
        return float(value)
    return float(round_half_up(exact, digits))


def round_half_up(exact: Decimal, digits: int) -> Decimal:
    """The decimal with so many digits after the point."""
    return exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def _calendar(name: str, days: Any) -> Any:
    dates = days.astype("datetime64[D]")
    match name:
        case "dayofweek":
            return (days + 4) % 7 + 1
        case "year":
            return dates.astype("datetime64[Y]").astype(np.int64) + 1970
        case "month":
            return dates.astype("datetime64[M]").astype(np.int64) % 12 + 1
    return (dates - dates.astype("datetime64[M]")).astype(np.int64) + 1
