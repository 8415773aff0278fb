"""Detections from Arrow to Python: which field of a constituent is which attribute, and the order rules see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.graph import compile_graph
from estream.event.rows import batch_schema
from estream.plan.model import Plan
from estream.rule.detection import Detected, Occurrence
from estream.spec.types import DataType

Key = tuple[str, str | None]
"""An event and the context a rule asked for, None for the event's own."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a leaf event: its type, and the field of a constituent that carries it."""

    name: str
    field: str
    type: DataType


@dataclass(frozen=True, slots=True)
class Layout:
    """What the detections of a plan look like."""

    leaves: Mapping[str, tuple[Attribute, ...]]
    ranks: Mapping[Key, int]
    """Each subscription's place in the graph."""

    def type_of(self, leaf: str, attribute: str) -> DataType | None:
        """The type of a leaf's attribute; None if it does not travel."""
        return next((one.type for one in self.leaves.get(leaf, ()) if one.name == attribute), None)


def layout_of(plan: Plan) -> Layout:
    """The layout of a plan's detections."""
    graph = compile_graph(plan)
    fields = batch_schema(graph).names[3:]
    leaves = {
        leaf.name: tuple(
            Attribute(column.name, fields[graph.column_of(leaf.name, column.name)], column.type)
            for column in leaf.columns
            if column.name in leaf.needed
        )
        for leaf in plan.leaves
    }
    ordered = sorted(plan.subscriptions, key=lambda one: (one.node, one.context or ""))
    return Layout(leaves, {(one.event, one.context): rank for rank, one in enumerate(ordered)})


def keys_of(layout: Layout, table: pa.Table) -> list[Key]:
    """Event and context of each detection."""
    events = texts_of(table.column("event"))
    if "context" in table.column_names:
        return list(zip(events, texts_of(table.column("context")), strict=True))
    contexts: dict[str, list[str | None]] = {}
    for event, context in layout.ranks:
        contexts.setdefault(event, []).append(context)
    return [(event, contexts[event][0] if len(contexts.get(event, ())) == 1 else None) for event in events]


def texts_of(column: Any) -> list[Any]:
    """A column of few different texts as a list: each text is one object, which is much quicker than many."""
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    found: list[Any] = []
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        words = [*chunk.dictionary.to_pylist(), None]
        found += [words[code] for code in chunk.indices.fill_null(len(words) - 1).to_pylist()]
    return found


def values_of(column: Any) -> list[Any]:
    """A column as Python values: plain numbers by way of numpy, which is ten times quicker than one by one."""
    kind, missing = column.type, column.null_count
    if missing == len(column):
        return [None] * missing
    if not missing and (pa.types.is_integer(kind) or pa.types.is_float64(kind)):
        whole = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
        numbers: list[Any] = whole.tolist()
        return numbers
    values: list[Any] = texts_of(column) if pa.types.is_string(kind) else column.to_pylist()
    return values


def in_order(layout: Layout, table: pa.Table) -> pa.Table:
    """The detections by end, then by their order in the graph: subscription, start, ids of the constituents."""
    if table.num_rows < 2:
        return table
    ranks = np.array([layout.ranks.get(key, len(layout.ranks)) for key in keys_of(layout, table)])
    start, end = _words(table, "start"), _words(table, "end")
    order = np.lexsort((start, ranks, end))
    columns = (end[order], ranks[order], start[order])
    tied = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    for first, last in _stretches(tied):
        ids = [_ids(table, row) for row in order[first:last]]
        order[first:last] = order[first:last][sorted(range(last - first), key=ids.__getitem__)]
    return table if (order[1:] > order[:-1]).all() else table.take(pa.array(order))


def _words(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    return np.asarray(table.column(name).to_numpy(), dtype=np.int64)


def _stretches(tied: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First and after last of each run of rows that are equal to their neighbour."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], tied.view(np.int8), [0]))))
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        yield int(first), int(last) + 1


def _ids(table: pa.Table, row: int) -> list[int]:
    return [one["id"] for one in table.column("constituents")[row].as_py()]


def constituents_of(table: pa.Table) -> tuple[Any, npt.NDArray[np.int64]]:
    """The constituents of all detections one after the other, and where those of each detection begin."""
    lists = table.column("constituents").combine_chunks()
    lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
    bounds = lists.offsets.to_numpy()
    return lists.values.slice(bounds[0], bounds[-1] - bounds[0]), bounds - bounds[0]


def detected(layout: Layout, table: pa.Table) -> list[Detected]:
    """The detections of a table, or of a slice of it, with their attributes as Python values."""
    if not table.num_rows:
        return []
    members, starts = constituents_of(table)
    parts = _occurrences(layout, members)
    bounds = starts.tolist()
    ticks = [None if one is None else tuple(one) for one in values_of(table.column("ticks"))]
    names = ("start", "end", "id", "tick")
    start, end, number, tick = (values_of(table.column(name)) for name in names)
    return [
        Detected(event, context, start[row], end[row], number[row],
                 tuple(parts[bounds[row] : bounds[row + 1]]), tick[row], ticks[row])
        for row, (event, context) in enumerate(keys_of(layout, table))
    ]  # fmt: skip


def _occurrences(layout: Layout, members: Any) -> list[Occurrence]:
    """The constituents one after the other, each with the attributes of its own leaf; made leaf by leaf."""
    events = texts_of(members.field("event"))
    ids, times = (values_of(members.field(name)) for name in ("id", "time"))
    places: dict[str, list[int]] = {}
    for place, event in enumerate(events):
        places.setdefault(event, []).append(place)
    made: list[Any] = [None] * len(events)
    for event, mine in places.items():
        leaf = layout.leaves.get(event, ())
        names, chosen = [one.name for one in leaf], pa.array(mine, pa.int64())
        columns = [values_of(members.field(one.field).take(chosen)) for one in leaf]
        rows = zip(*columns, strict=True) if columns else repeat((), len(mine))
        for place, values in zip(mine, rows, strict=True):
            made[place] = Occurrence(
                event, ids[place], times[place], MappingProxyType(dict(zip(names, values, strict=True)))
            )
    return made
