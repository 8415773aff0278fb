"""The scalar functions and aggregates of the expression language, and what they take and give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from estream.spec.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING, DataType

Parameter: TypeAlias = Literal["number", "double", "scale", "text", "int", "date", "timestamp", "same"]
"""What an operand must be: `number` keeps its type, `double` is cast to it, `scale` is a constant from 0 to 18,
`same` are all of the one type that is common to them."""


@dataclass(frozen=True, slots=True)
class Function:
    """What a scalar function takes and gives."""

    parameters: tuple[Parameter, ...]
    result: DataType | None = None
    """None: the type of its first operand."""
    optional: int = 0
    """How many parameters at the end may be left out."""
    variadic: bool = False
    """The last parameter may be repeated."""

    @property
    def least(self) -> int:
        return len(self.parameters) - self.optional

    @property
    def most(self) -> int | None:
        return None if self.variadic else len(self.parameters)


FUNCTIONS: dict[str, Function] = {
    "abs": Function(("number",)),
    "round": Function(("number", "scale"), optional=1),
    "floor": Function(("number",), BIGINT),
    "ceil": Function(("number",), BIGINT),
    "sqrt": Function(("double",), DOUBLE),
    "exp": Function(("double",), DOUBLE),
    "ln": Function(("double",), DOUBLE),
    "log10": Function(("double",), DOUBLE),
    "power": Function(("double", "double"), DOUBLE),
    "sign": Function(("double",), DOUBLE),
    "isnan": Function(("double",), BOOLEAN),
    "greatest": Function(("same", "same"), variadic=True),
    "least": Function(("same", "same"), variadic=True),
    "coalesce": Function(("same",), variadic=True),
    "upper": Function(("text",), STRING),
    "lower": Function(("text",), STRING),
    "length": Function(("text",), INT),
    "trim": Function(("text",), STRING),
    "ltrim": Function(("text",), STRING),
    "rtrim": Function(("text",), STRING),
    "substring": Function(("text", "int", "int"), STRING, optional=1),
    "concat": Function(("text",), STRING, variadic=True),
    "startswith": Function(("text", "text"), BOOLEAN),
    "endswith": Function(("text", "text"), BOOLEAN),
    "contains": Function(("text", "text"), BOOLEAN),
    "year": Function(("date",), INT),
    "month": Function(("date",), INT),
    "day": Function(("date",), INT),
    "dayofweek": Function(("date",), INT),
    "hour": Function(("timestamp",), INT),
    "minute": Function(("timestamp",), INT),
    "second": Function(("timestamp",), INT),
    "unix_seconds": Function(("timestamp",), BIGINT),
    "unix_millis": Function(("timestamp",), BIGINT),
    "unix_micros": Function(("timestamp",), BIGINT),
}
"""By their names in the tree."""

ALIASES = {
    "ceiling": "ceil",
    "pow": "power",
    "signum": "sign",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "ucase": "upper",
    "lcase": "lower",
    "char_length": "length",
    "character_length": "length",
    "substr": "substring",
    "dayofmonth": "day",
}
"""Other names that Spark has for them."""

REWRITTEN = {"if": 3, "nullif": 2, "isnull": 1, "isnotnull": 1}
"""Functions that the parser turns into `case` and `is null`, and how many operands they have."""

WINDOW_AGGREGATES = ("stddev", "approx_count_distinct")
"""Aggregates over the rows of a window only."""

AGGREGATES = ("first", "last", "min", "max", "sum", "avg", "count", "collect", "delta", *WINDOW_AGGREGATES)

NAMES = tuple(sorted({*FUNCTIONS, *ALIASES, *REWRITTEN}))
"""Every scalar function a user may write."""
