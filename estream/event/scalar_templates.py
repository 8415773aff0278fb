"""Python text for each operation on scalars, as numba compiles it, with the results Spark gives in non-ANSI mode."""

from __future__ import annotations

from collections.abc import Sequence

from estream.spec.expression import Operation
from estream.spec.types import DataType

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")

_CONSTRUCTORS = {
    "tinyint": "np.int8",
    "smallint": "np.int16",
    "int": "np.int32",
    "bigint": "np.int64",
    "float": "np.float32",
    "double": "np.float64",
    "decimal": "np.float64",
    "boolean": "bool",
    "date": "np.int32",
    "timestamp": "np.int64",
    "interval": "np.int64",
    "string": "np.int64",
    "void": "bool",
}
_EXACT = {"=": "{0} == {1}", "<>": "{0} != {1}", "<": "{0} < {1}", "<=": "{0} <= {1}"}
# Spark holds NaN equal to itself and greater than every other number.
_REAL = {
    "=": "{0} == {1} or ({0} != {0} and {1} != {1})",
    "<>": "{0} != {1} and ({0} == {0} or {1} == {1})",
    "<": "{0} < {1} or ({0} == {0} and {1} != {1})",
    "<=": "{0} <= {1} or {1} != {1}",
}
_DAY = 86_400_000_000
_MAX_SECONDS = (2**63 - 1) // 1_000_000
_VALUES = {
    "+": "{0} + {1}",
    "-": "{0} - {1}",
    "*": "{0} * {1}",
    "/": "{0} / {1}",
    "neg": "-{0}",
    "abs": "abs({0})",
    "sqrt": "np.sqrt({0})",
    "exp": "np.exp({0})",
    "ln": "np.log({0})",
    "log10": "np.log10({0})",
    # Java's power of 1 to an infinite or NaN exponent is NaN, C's is 1.
    "power": "math.nan if {1} != {1} or (abs({0}) == 1.0 and abs({1}) == math.inf) else {0} ** {1}",
    "sign": "1.0 if {0} > 0.0 else -1.0 if {0} < 0.0 else {0}",
    "hour": "{0} // 3600000000 % 24",
    "minute": "{0} // 60000000 % 60",
    "second": "{0} // 1000000 % 60",
    "unix_seconds": "{0} // 1000000",
    "unix_millis": "{0} // 1000",
    "unix_micros": "{0}",
}
# The compiler takes it that signed numbers do not overflow, and makes `x + 1 < x` false; unsigned ones may.
_WRAPPED = {
    "+": "np.int64(np.uint64({0}) + np.uint64({1}))",
    "-": "np.int64(np.uint64({0}) - np.uint64({1}))",
    "*": "np.int64(np.uint64({0}) * np.uint64({1}))",
    "neg": "np.int64(np.uint64(0) - np.uint64({0}))",
}
_MORE_NULLS = {"/": "{1} == 0.0", "%": "{1} == 0", "ln": "{0} <= 0.0", "log10": "{0} <= 0.0"}


def typed(kind: DataType, value: str) -> str:
    """The value in the exact type: numba widens small integers, Spark lets them overflow."""
    return f"{_CONSTRUCTORS[kind.name]}({value})"


def zero(kind: DataType) -> str:
    """What stands where a value is null."""
    return typed(kind, "0")


def compare(name: str, kind: DataType, left: str, right: str) -> str:
    """A comparison of two values that are not null."""
    if name in (">", ">="):
        name, left, right = name.replace(">", "<"), right, left
    return (_REAL if kind.name in ("float", "double", "decimal") else _EXACT)[name].format(left, right)


def call(operation: Operation, operands: Sequence[str]) -> tuple[str, str | None]:
    """The value of an operation on operands that are not null, and when it is null nevertheless."""
    name = operation.name
    more = _MORE_NULLS.get(name)
    return _value(operation, operands), more.format(*operands) if more else None


def _value(operation: Operation, operands: Sequence[str]) -> str:
    real = operation.operands[0].type.name in ("float", "double")
    first = operands[0]
    match operation.name:
        case "%":
            return _remainder(first, operands[1], real)
        case "cast":
            return _cast(operation.operands[0].type.name, operation.type.name, first)
        case "floor" | "ceil":
            return _saturated(f"np.{operation.name}({first})", 63)
        case "round":
            away = (
                f"np.trunc({first}) + (math.copysign(1.0, {first}) if abs({first} - np.trunc({first})) >= 0.5 else 0.0)"
            )
            return away if real else first
        case "year" | "month" | "day" | "dayofweek":
            moment = operation.operands[0].type.name == "timestamp"
            return _calendar(operation.name, f"(np.int64({first}) // {_DAY})" if moment else f"np.int64({first})")
    if operation.name in _WRAPPED and operation.type.name in ("bigint", "timestamp", "interval"):
        return _WRAPPED[operation.name].format(*operands)
    return _VALUES[operation.name].format(*operands)


def _remainder(left: str, right: str, real: bool) -> str:
    """Java's remainder has the sign of the dividend, Python's that of the divisor."""
    if real:
        return f"np.fmod({left}, {right})"
    floored = f"({left} % {right})"
    shifted = f"{floored} - {right} if {floored} != 0 and ({floored} < 0) != ({left} < 0) else {floored}"
    return f"0 if {right} == -1 else {shifted}"


def _saturated(value: str, bits: int) -> str:
    """A real number as an integer: cut off, held at the limits, zero for NaN."""
    limit = float(2**bits)
    return (
        f"np.int64(0) if {value} != {value} else np.int64({2**bits - 1}) if {value} >= {limit!r} "
        f"else np.int64({-(2**bits)}) if {value} <= {-limit!r} else np.int64({value})"
    )


def _cast(source: str, target: str, value: str) -> str:
    match source, target:
        case ("boolean", _):
            return f"1 if {value} else 0"
        case (_, "boolean"):
            return f"{value} != 0"
        case ("float" | "double" | "decimal", "tinyint" | "smallint" | "int" | "bigint"):
            return _saturated(f"np.float64({value})", 63 if target == "bigint" else 31)
        case ("timestamp", "bigint"):
            return f"{value} // 1000000"
        case ("timestamp", "double"):
            return f"{value} / 1000000.0"
        case ("timestamp", "date"):
            return f"{value} // {_DAY}"
        case ("date", "timestamp"):
            return f"np.int64({value}) * {_DAY}"
        case (_, "timestamp"):
            over, under = f"{value} > {_MAX_SECONDS}", f"{value} < {-_MAX_SECONDS}"
            return f"{2**63 - 1} if {over} else {-(2**63)} if {under} else np.int64({value}) * 1000000"
    return value


def _calendar(name: str, days: str) -> str:
    """The proleptic Gregorian calendar, counted from the first of March of the year 0 in eras of 400 years."""
    if name == "dayofweek":
        return f"({days} + 4) % 7 + 1"
    shifted = f"({days} + 719468)"
    in_era = f"({shifted} % 146097)"
    year = f"(({in_era} - {in_era} // 1460 + {in_era} // 36524 - {in_era} // 146096) // 365)"
    in_year = f"({in_era} - (365 * {year} + {year} // 4 - {year} // 100))"
    month = f"((5 * {in_year} + 2) // 153)"
    if name == "day":
        return f"{in_year} - (153 * {month} + 2) // 5 + 1"
    if name == "month":
        return f"({month} + 2) % 12 + 1"
    return f"{year} + {shifted} // 146097 * 400 + {month} // 10"
