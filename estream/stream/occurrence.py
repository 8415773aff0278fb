"""Rows of a query as occurrences of its events, in the columns that the event graph takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import one_chunk
from estream.event.graph import Graph
from estream.event.identity import row_ids
from estream.event.rows import batch_schema
from estream.plan.model import Leaf


def occurrences(graph: Graph, leaf: Leaf, columns: Mapping[str, Any]) -> pa.Table:
    """Occurrences of a primitive event, by `batch_schema`; `columns` are the leaf's attributes of the rows it has."""
    schema = batch_schema(graph)
    times = microseconds(columns[leaf.time])
    count = len(times)
    made: list[Any] = [
        pa.array(np.full(count, graph.event_code(leaf.name), dtype=np.int64)),
        times,
        pa.array(ids(leaf, columns)),
    ]
    own = {column for column in leaf.columns if column.name in leaf.needed}
    for column, field in zip(graph.columns, list(schema)[3:], strict=True):
        values = columns[column.name] if column in own else pa.nulls(count, field.type)
        made.append(values if values.type == field.type else values.cast(field.type))
    return pa.table(made, schema=schema)


def ids(leaf: Leaf, columns: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    """The ids of rows: a single integer column named `id` as it is, else a hash of what a row is known by."""
    spelt = {column.name.lower(): column for column in leaf.columns}
    known_by = [spelt[name.lower()] for name in leaf.id] or list(leaf.columns)
    if len(leaf.id) == 1 and known_by[0].type.is_integer:
        values = one_chunk(columns[known_by[0].name])
        if values.null_count == 0:
            return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)
    # Raised events that say the same are told apart by their times.
    names = [*(column.name for column in known_by), *((leaf.time,) if leaf.raised else ())]
    return row_ids(pa.table([columns[name] for name in names], names=names), names)


def microseconds(column: Any) -> Any:
    """A timestamp column as numbers."""
    values = one_chunk(column)
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).view(pa.int64())
    return values.cast(pa.int64())
