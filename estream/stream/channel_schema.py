"""The columns of channels: Spark SQL types as Arrow types and back, and rows made to fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estream.errors import EStreamError
from estream.event.arrow_types import ARROW_TYPES
from estream.spec.type_text import parse_type
from estream.spec.types import DataType
from estream.suggest import did_you_mean

_NAMES: Final = {kind: name for name, kind in ARROW_TYPES.items()}


def arrow_schema(columns: Mapping[str, DataType] | Mapping[str, str]) -> pa.Schema:
    """The Arrow schema of columns by name, their types as Spark SQL writes them."""
    kinds = {name: parse_type(kind) if isinstance(kind, str) else kind for name, kind in columns.items()}
    return pa.schema([pa.field(name, arrow_type(kind)) for name, kind in kinds.items()])


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type that carries a Spark SQL type, as Spark's own conversion has it."""
    match kind.name:
        case "decimal":
            return pa.decimal128(int(kind.arguments[0]), int(kind.arguments[1]))
        case "array" if kind.element is not None:
            return pa.list_(arrow_type(kind.element))
        case "map":
            return pa.map_(*(arrow_type(parse_type(part)) for part in kind.arguments))
        case "struct":
            fields = [part.partition(":") for part in kind.arguments]
            return pa.struct([(name, arrow_type(parse_type(inner))) for name, _, inner in fields])
    return ARROW_TYPES[kind.name]


def type_name(kind: pa.DataType) -> str:
    """The Spark SQL name of an Arrow type."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in kind)}>"
    return _NAMES.get(kind, str(kind))


def parse_columns(text: str) -> pa.Schema:
    """The schema of a text like `ts timestamp, price decimal(12,2)`; EStreamError says what is wrong with it."""
    columns: dict[str, str] = {}
    for part in _parts(text):
        name, _, kind = part.strip().partition(" ")
        if not kind.strip() or name in columns:
            wrong = "is there twice" if name in columns else "has no type"
            raise EStreamError(f"schema: column {name!r} {wrong}; write it like 'ts timestamp, price double'")
        columns[name] = kind
    try:
        return arrow_schema(columns)
    except ValueError as error:
        raise EStreamError(f"schema: {error}") from None


def describe_difference(there: pa.Schema, wanted: pa.Schema) -> str:
    """The first columns in which two schemas differ, in words; nothing if they are the same."""
    if there.equals(wanted):
        return ""
    old, new = ({field.name: type_name(field.type) for field in schema} for schema in (there, wanted))
    changed = [f"'{name}' is {old[name]}, not {kind}" for name, kind in new.items() if old.get(name, kind) != kind]
    lacks = [f"it has no '{name}'" for name in new if name not in old]
    extra = [f"it has '{name}' too" for name in old if name not in new]
    return ", ".join([*changed, *lacks, *extra]) or f"they are in the order {', '.join(old)}"


def conform(table: pa.Table, schema: pa.Schema, subject: str) -> pa.Table:
    """The table with the columns of the schema, by name; a strange column and a value that would change are refused."""
    for name in table.schema.names:
        if name not in schema.names:
            hint = did_you_mean(name, schema.names)
            there = hint or f"it has {', '.join(schema.names)}"
            raise EStreamError(f"{subject} has no column '{name}'; {there}")
    columns = [_column(table, field, subject) for field in schema]
    return pa.table(columns, schema=schema)


def stamped(rows: pa.Table, time: str | None, now: int) -> pa.Table:
    """The rows with the time of the append where the time column has none."""
    if time is None or rows[time].null_count == 0:
        return rows
    place = rows.schema.get_field_index(time)
    kind = rows.schema.field(place).type
    filled = pc.fill_null(rows[time], pa.scalar(now, pa.int64()).cast(kind))
    return rows.set_column(place, rows.schema.field(place), filled)


def constant(value: int | None, kind: pa.DataType, length: int) -> pa.Array:
    """A column with the same whole number, or time in microseconds, in every row."""
    if value is None:
        return pa.nulls(length, kind)
    return pa.array(np.full(length, value, np.int64)).cast(kind)


def _column(table: pa.Table, field: pa.Field, subject: str) -> pa.ChunkedArray:
    if field.name not in table.schema.names:
        return pa.chunked_array([pa.nulls(table.num_rows, field.type)])
    column = table[field.name]
    if column.type.equals(field.type):
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        found = type_name(column.type)
        raise EStreamError(
            f"{subject}: column '{field.name}' is {type_name(field.type)}; a value of type {found} does not fit"
        ) from None


def _parts(text: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, level = [""], 0
    for letter in text:
        level += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and level == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
