"""Columns of every type with awkward values, and expressions over them as the kernel works them out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from estream.event.scalar import PREAMBLE, arguments_of, to_source
from estream.spec.expression import Attribute, Expression, Literal
from estream.spec.expression_parser import parse_expression
from estream.spec.type_check import Scope, check_types
from estream.spec.types import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, SMALLINT, STRING, TIMESTAMP, TINYINT, DataType
from estream.text import Text

COLUMNS: dict[str, DataType] = {
    "a": TINYINT,
    "h": SMALLINT,
    "i": INT,
    "j": INT,
    "l": BIGINT,
    "m": BIGINT,
    "f": FLOAT,
    "x": DOUBLE,
    "y": DOUBLE,
    "c": DataType("decimal", ("10", "2")),
    "s": STRING,
    "u": STRING,
    "p": BOOLEAN,
    "q": BOOLEAN,
    "t": TIMESTAMP,
    "w": TIMESTAMP,
    "d": DATE,
    "e": DATE,
}
ARROW = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal": pa.decimal128(10, 2),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# Columns have different numbers of values: going round them at different speeds pairs each with many others.
VALUES: dict[str, Sequence[Any]] = {
    "a": (None, 0, 1, -1, 127, -128, 5),
    "h": (None, 0, -1, 32767, -32768, 300),
    "i": (None, 0, 1, -1, 2**31 - 1, -(2**31), 7, -7, 3),
    "j": (0, 3, -3, None, -1, 2**31 - 1, -(2**31), 10),
    "l": (None, 0, 2**63 - 1, -(2**63), 42, -42, 2**31, 1, -1, 9_223_372_036_855),
    "m": (2, None, -1, 0, 2**63 - 1, -(2**63), 3),
    "f": (0.0, None, 1.5, -2.5, math.nan, math.inf, 0.1, 3.4e38),
    "x": (None, 0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf, 0.5, 2.675, 1e300, -1.0, 1.0),
    "y": (2.0, math.nan, None, 0.0, -3.5, math.inf, -math.inf, 0.49999999999999994, 1e19, -1e10, 0.1),
    "c": ("1.25", None, "0.00", "-7.50", "12345678.90"),
    "s": (None, "", "abc", "ABC", " abc ", "a%c", "x_y", "ünï", "42", "a\nb", "b"),
    "u": ("abc", None, "", "a", "B", "zz", "ab"),
    "p": (True, False, None),
    "q": (True, None, False, False, True),
    "t": (
        None,
        *map(moment, ("1970-01-01", "2024-02-29T23:59:59.999999", "1969-12-31T23:59:59.5", "2026-01-31T12:34:56")),
    ),
    "w": (
        *map(moment, ("2024-03-01", "1970-01-01", "1900-01-01T00:00:00.000001")),
        None,
        moment("2100-12-31T01:02:03"),
    ),
    "d": (date(1970, 1, 1), None, date(2024, 2, 29), date(1969, 12, 31), date(2000, 3, 1), date(1900, 12, 31)),
    "e": (date(2024, 3, 1), date(1970, 1, 1), None, date(2023, 1, 1)),
}
ROWS = 120


def rows() -> pa.Table:
    columns = {
        name: [values[row % len(values)] for row in range(ROWS)] for name, values in VALUES.items()
    }  # fmt: skip
    arrays = {}
    for name, values in columns.items():
        kind = ARROW[COLUMNS[name].name]
        arrays[name] = pa.array(values).cast(kind) if pa.types.is_decimal(kind) else pa.array(values, kind)
    return pa.table(arrays)


TABLE = rows()


def typed(text: str) -> Expression:
    located = Text(text)
    expression, problems = check_types(parse_expression(located), Scope(COLUMNS), located)
    assert not problems, problems
    return expression


def plain(value: Any) -> Any:
    """Values that compare: times as microseconds, days as numbers."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, datetime):
        return (value.astimezone(UTC) - moment("1970-01-01")) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return value


def python_values(array: Any) -> list[Any]:
    if pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type):
        return array.cast(pa.int64()).to_pylist()
    return [plain(value) for value in array.to_pylist()]


def same(left: Any, right: Any, exact: bool) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right if exact else math.isclose(left, right, rel_tol=1e-13)
    return bool(left == right) and (left is None) == (right is None)


class Codes(dict[str, int]):
    """A code for each text, given when it is first seen."""

    def __missing__(self, text: str) -> int:
        return self.setdefault(text, len(self) + 1)


def scalars(name: str, codes: Codes) -> list[tuple[Any, bool]]:
    """A column as the kernel sees it: values with null flags, garbage under the nulls."""
    kind = COLUMNS[name].name
    if kind == "string":
        return [
            (np.int64(codes[value] if value is not None else 99), value is None) for value in TABLE[name].to_pylist()
        ]
    if kind == "decimal":
        return [(float(value or 0), value is None) for value in TABLE[name].to_pylist()]
    array = TABLE[name].combine_chunks()
    array = array.cast(pa.int64()) if kind == "timestamp" else array.cast(pa.int32()) if kind == "date" else array
    dtype = array.type.to_pandas_dtype()
    return [(dtype(1 if value is None else value), value is None) for value in array.to_pylist()]


def compiled_results(expression: Expression, codes: Codes) -> list[Any]:
    arguments = arguments_of(expression)
    source = to_source(expression, "asked", {argument: f"p{n}" for n, argument in enumerate(arguments)})
    scope: dict[str, Any] = {}
    exec(PREAMBLE + source, scope)
    function = numba.njit(scope["asked"])
    columns: list[list[tuple[Any, ...]]] = []
    for argument in arguments:
        if isinstance(argument, Literal):
            columns.append([(np.int64(codes[str(argument.value)]),)] * ROWS)
        else:
            assert isinstance(argument, Attribute)
            columns.append(list(scalars(argument.name, codes)))
    results = [function(*(part for column in columns for part in column[row])) for row in range(ROWS)]
    return [None if null else value for value, null in results]
