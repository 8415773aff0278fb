"""Packed rows: what travels between the operators, a handful of large rows instead of a million small ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa

Kind: TypeAlias = Literal[
    "rows", "feed", "mark", "alive", "clock", "relayed", "reached", "detections", "published", "late", "dead", "status"
]
"""- rows: occurrences of primitive events, for the route `name`;
- feed: rows of a query, for the operators of the feed `name`;
- mark: times of the rows of the source `name`;
- alive: a branch that Spark's watermark holds has run;
- clock: what time it is;
- relayed: occurrences of the event `name` for the second stage;
- reached: the watermark of the first stage;
- published: rows of the query `name` for its channel;
- detections, late, dead, status: what leaves the query."""

SCHEMA = "shard int, kind string, name string, least bigint, payload binary"
"""Of a packed row; `shard` is Spark's key of the shard."""

ARROW_SCHEMA = pa.schema(
    [
        ("shard", pa.int32()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("least", pa.int64()),
        ("payload", pa.binary()),
    ]
)
FIRST = -(1 << 63)
"""The `least` of what a host must know before all rows."""


@dataclass(frozen=True, slots=True)
class Packed:
    """One packed row."""

    shard: int
    kind: Kind
    name: str
    payload: bytes
    least: int = FIRST
    """Of rows and what is relayed: the least time in it."""


def to_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def to_table(payload: bytes) -> pa.Table:
    """The table of an Arrow stream."""
    return pa.ipc.open_stream(payload).read_all()


def to_batch(rows: Iterable[Packed]) -> pa.RecordBatch:
    """Packed rows as Spark takes them from Arrow."""
    chosen = list(rows)
    columns: list[list[Any]] = [
        [row.shard for row in chosen],
        [row.kind for row in chosen],
        [row.name for row in chosen],
        [row.least for row in chosen],
        [row.payload for row in chosen],
    ]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, ARROW_SCHEMA, strict=True)], ARROW_SCHEMA)


def to_frame(rows: Iterable[Packed]) -> Any:
    """Packed rows as the state operators give them."""
    import pandas as pd

    chosen = list(rows)
    return pd.DataFrame(
        {
            "shard": pd.Series([row.shard for row in chosen], dtype="int32"),
            # Without a type, columns of no rows would be numbers.
            "kind": pd.Series([row.kind for row in chosen], dtype="object"),
            "name": pd.Series([row.name for row in chosen], dtype="object"),
            "least": pd.Series([row.least for row in chosen], dtype="int64"),
            "payload": pd.Series([row.payload for row in chosen], dtype="object"),
        }
    )


def from_columns(columns: Any) -> Iterator[Packed]:
    """The packed rows of a frame, or of anything that has its columns by name."""
    names = ("shard", "kind", "name", "payload", "least")
    for shard, kind, name, payload, least in zip(*(columns[column] for column in names), strict=True):
        yield Packed(int(shard), kind, name, bytes(payload), int(least))
