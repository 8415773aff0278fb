"""A batch as it came, put right: the columns and types of the graph, and no row without an event, time or id."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from estream.errors import EStreamError

OWN = ("event", "time", "id")


def fitted(batch: pa.Table, schema: pa.Schema, counts: Counter[str]) -> pa.Table:
    """The batch in this schema. What takes no part is counted.

    A value that is not of its column's type is cast as SQL does, to null where it cannot be (`wrong_type`). Rows whose
    time, id or event is null are left out (`null_time`, `null_id`, `null_event`).
    """
    if batch.schema.types != schema.types or batch.schema.names != schema.names:
        batch = _with_schema(batch, schema, counts)
    for name in OWN:
        column = batch.column(name)
        if column.null_count:
            counts[f"null_{name}"] += column.null_count
            batch = batch.filter(pc.is_valid(column))
    return batch


def _with_schema(batch: pa.Table, schema: pa.Schema, counts: Counter[str]) -> pa.Table:
    missing = [name for name in schema.names if name not in batch.column_names]
    if missing:
        raise EStreamError(f"the batch has no column '{missing[0]}'; its columns are {', '.join(schema.names)}")
    columns = []
    for field in schema:
        column = batch.column(field.name)
        fitting = column if column.type == field.type else _cast(column, field.type)
        counts["wrong_type"] += fitting.null_count - column.null_count
        columns.append(fitting)
    return pa.table(columns, schema=schema)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """All at once if all can be cast, else one by one."""
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.chunked_array([pa.array([_one(value, kind) for value in column], kind)], kind)


def _one(value: pa.Scalar, kind: pa.DataType) -> Any:
    try:
        return value.cast(kind).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
