"""Between EStream's data types and sqlglot's, and the type of a SQL expression whose columns have types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from estream.spec.types import STRING, TIMESTAMP, UNKNOWN, DataType, array_of

WINDOW: Final = DataType("struct", ("start:timestamp", "end:timestamp"))
"""What `window(...)` and `session_window(...)` give."""

_NAMES: Final = {
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.BOOLEAN: "boolean",
    exp.DType.DATE: "date",
    exp.DType.INTERVAL: "interval",
    exp.DType.BINARY: "binary",
    exp.DType.NULL: "void",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
    **dict.fromkeys(exp.DataType.TEXT_TYPES, STRING.name),
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), TIMESTAMP.name),
}
# Where sqlglot answers by another dialect's rules, only Spark can tell.
_DOUBTFUL: Final = (
    *(exp.Anonymous, exp.Dot, exp.Bracket, exp.Query, exp.If, exp.Round, exp.Mod, exp.IntDiv, exp.Floor, exp.Ceil),
    *(exp.DateAdd, exp.DateSub, exp.Interval),
)


def type_of(node: exp.Expr, columns: Mapping[int, DataType]) -> DataType:
    """The type of an expression; `columns` gives that of each column in it, by the identity of its node."""
    stripped = node.unalias()
    if isinstance(stripped, exp.Column):
        return columns.get(id(stripped), UNKNOWN)
    typed = stripped.copy()
    for column, written in zip(typed.find_all(exp.Column), stripped.find_all(exp.Column), strict=True):
        known = columns.get(id(written), UNKNOWN)
        if known.is_known:
            column.replace(exp.cast(exp.null(), exp.DataType.build(str(known), dialect="spark"), copy=False))
    double = any(part.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT) for part in typed.find_all(exp.Cast))
    if not isinstance(typed, exp.Cast) and any(_is_doubtful(part, double) for part in typed.walk()):
        return UNKNOWN
    try:
        annotated = annotate_types(typed, dialect="spark")
    except (SqlglotError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        return UNKNOWN
    found = _own(annotated.type)
    # A difference of timestamps is an interval in Spark.
    return UNKNOWN if isinstance(typed, exp.Sub) and found == TIMESTAMP else found


def field_of(struct: DataType, name: str) -> DataType | None:
    """The type of a struct's field; None if it has no such field, UNKNOWN if it is not known to be a struct."""
    if struct.name != "struct":
        return UNKNOWN
    fields = dict(argument.split(":", 1) for argument in struct.arguments if ":" in argument)
    for field, written in fields.items():
        if field.strip().lower() == name.lower():
            return _own(exp.DataType.build(written.strip(), dialect="spark"))
    return None


def _is_doubtful(node: exp.Expr, double: bool) -> bool:
    # A whole literal beyond int is a bigint; one with a point is a decimal, unless a double makes all double.
    if isinstance(node, exp.Literal) and not node.is_string:
        return abs(int(node.this)) >= 2**31 if node.is_int else not double
    return isinstance(node, _DOUBTFUL)


def _own(found: exp.DataType | None) -> DataType:
    if found is None:
        return UNKNOWN
    if found.this is exp.DType.ARRAY and found.expressions:
        element = found.expressions[0]
        return array_of(_own(element if isinstance(element, exp.DataType) else None))
    if found.this is exp.DType.DECIMAL:
        return DataType("decimal", tuple(part.name for part in found.expressions) or ("10", "0"))
    name = _NAMES.get(found.this)
    return DataType(name) if name else UNKNOWN
