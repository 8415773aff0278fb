"""Occurrences that another graph has detected, for relays of this one: named events go on in other partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import one_chunk
from estream.event.graph import Graph
from estream.event.rows import batch_schema
from estream.event.state import State
from estream.event.words import FOUND, NONE, PARTS, POOL, POOL_WORDS

Words = npt.NDArray[np.int64]


def take_relayed(graph: Graph, state: State, relayed: Mapping[int, pa.Table]) -> None:
    """Let the detections of other graphs be found at these nodes, so that the relays of this step read them.

    The tables are as `step` gives detections. Their nodes stand in the graph without operands: nothing else feeds them.
    """
    for node, table in relayed.items():
        if table.num_rows:
            _take(graph, state, node, table)


def _take(graph: Graph, state: State, node: int, table: pa.Table) -> None:
    lists = one_chunk(table.column("constituents"))
    offsets = np.asarray(lists.offsets.to_numpy(), dtype=np.int64)
    members = lists.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    first_row = state.rows.append(*_rows(graph, members))
    found_at(state, node, _words(table, "start"), _words(table, "end"), offsets - offsets[0], first_row)


def found_at(state: State, node: int, start: Words, end: Words, offsets: Words, first_row: int) -> None:
    """Let occurrences be found at a node; their constituents are the rows from `first_row` on, at these offsets."""
    memory, count = state.memory, len(start)
    parts, pool = memory.used(PARTS), memory.used(POOL)
    made = np.column_stack([start, end, offsets[:-1] + len(parts), np.diff(offsets), np.full(count, NONE)])
    numbers = len(pool) // POOL_WORDS + np.arange(count)
    found = np.column_stack([np.full(count, node), ~numbers]).reshape(-1)
    memory.fill(PARTS, np.concatenate([parts, first_row + np.arange(offsets[-1])]))
    memory.fill(POOL, np.concatenate([pool, made.reshape(-1)]))
    memory.fill(FOUND, np.concatenate([memory.used(FOUND), found]))


def _rows(graph: Graph, members: pa.StructArray) -> tuple[Words, Words, Words, pa.Table]:
    """Event codes, times, ids and attributes of constituents."""
    names = members.field("event").dictionary_encode()
    # The dictionary has all events of the other graph: those that this one lacks are no constituents.
    known = {name: code for code, name in enumerate(graph.events)}
    codes = np.array([known.get(name, NONE) for name in names.dictionary.to_pylist()] or [NONE], dtype=np.int64)
    events = codes[names.indices.to_numpy(zero_copy_only=False)]
    schema = pa.schema(list(batch_schema(graph))[3:])
    attributes = [
        _attribute(members, column.name, f"{column.name}:{column.type}", wanted.type)
        for column, wanted in zip(graph.columns, schema, strict=True)
    ]
    return (
        events,
        np.asarray(members.field("time").to_numpy(), dtype=np.int64),
        np.asarray(members.field("id").to_numpy(), dtype=np.int64),
        pa.table(attributes, schema=schema),
    )


def _attribute(members: pa.StructArray, name: str, typed_name: str, kind: pa.DataType) -> Any:
    """The column of an attribute, which the other graph may have named with its type."""
    for candidate in (name, typed_name):
        place = members.type.get_field_index(candidate)
        if place >= 0 and members.type.field(place).type == kind:
            return members.field(place)
    return pa.nulls(len(members), kind)


def _words(table: pa.Table, name: str) -> Words:
    return np.asarray(one_chunk(table.column(name)).to_numpy(), dtype=np.int64)
