"""Windows by rows or by time, sliding row by row or in batches: aggregates over them, for each group inside.

Queries over the same window of the same rows share it: rows are kept once and equal aggregates are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from estream.event import operator_kernel as kernel
from estream.event.columns import one_chunk
from estream.event.evaluate import evaluate, holds
from estream.event.operator_aggregates import FOUND, Results, operand_values
from estream.event.operator_folds import LAYOUTS, Layout, Span, begin_part, sweep_part
from estream.event.operator_order import Released, stretches
from estream.event.operator_store import Arrays, Kept, KeyNumbers, Words, joined, place_map
from estream.event.operator_text import decoded
from estream.event.operator_window import Output, SharedWindow
from estream.event.rows import arrow_type
from estream.plan.stream_operator import Extent
from estream.spec.expression import Attribute, Expression

Values: TypeAlias = dict[tuple[str | None, str], pa.Array]
"""Columns by the event and name that expressions know them by."""
LEAST_SWEPT = 256
"""So few rows are not worth sweeping."""
_OWN = {"rows": ("position", "time"), "time": ("position",)}
_BEFORE_ALL = np.iinfo(np.int64).min
_TIME = pa.timestamp("us", "UTC")


def begin_window(window: SharedWindow) -> Kept:
    """What a window keeps before it has seen anything."""
    kinds = {name: arrow_type(kind) for name, kind in window.source}
    parts = window.aggregates.parts
    layouts = [(part.slot, LAYOUTS[part.kind]) for part in parts]
    kept = Kept(
        keys={
            "cells": KeyNumbers(pa.schema([(name, kinds[name]) for name in window.cell])),
            "partitions": KeyNumbers(pa.schema([(name, kinds[name]) for name in window.partition])),
        },
        arrays={
            "rows": Arrays(
                (*_OWN[window.extent.by], "cell", "following", "before", *_named(layouts, "row_words")),
                _named(layouts, "row_doubles"),
            ),
            "cells": Arrays(
                ("partition", "front", "last", "middle", *_named(layouts, "cell_words")),
                _named(layouts, "cell_doubles"),
                counters=("size",),
            ),
            "partitions": Arrays(counters=("count",)),
        },
        tables={
            "values": pa.schema(
                [(str(place), arrow_type(each.type)) for place, each in enumerate(window.aggregates.taken)]
            ).empty_table(),
            "pending": _raw_schema(window).empty_table(),
        },
        numbers={"swept": 0, "oldest": 0},
    )
    for part in parts:
        begin_part(kept, part, arrow_type(part.operand.type))
    return kept


def _named(layouts: list[tuple[str, Layout]], kind: str) -> tuple[str, ...]:
    return tuple(f"{slot}.{name}" for slot, layout in layouts for name in getattr(layout, kind))


def _raw_schema(window: SharedWindow) -> pa.Schema:
    """Plain columns and aggregates, then the window they are of."""
    kinds = dict(window.source)
    plain = [(f".{name}", arrow_type(kinds[name])) for name in window.plain]
    found = [(f"{FOUND}{place}", arrow_type(each.type)) for place, each in enumerate(window.aggregates.all)]
    own = [(name, pa.int64()) for name in ("cell", "partition", "number", "start", "end")]
    return pa.schema([*plain, *found, *own])


def step_window(window: SharedWindow, kept: Kept, released: Released, now: int) -> tuple[pa.Table, ...]:
    """What each query gives for rows in order, where no row below `now` will come any more."""
    given: list[tuple[pa.Table, ...]] = []
    for part, below in stretches(released, now):
        cells = kept.keys["cells"].numbers(part.rows)
        partitions = kept.keys["partitions"].numbers(part.rows) if window.extent.by == "rows" else cells
        stretch = _Stretch(part, cells, partitions, below)
        raw = _raw(window, kept, stretch)
        if window.extent.batch:
            raw = _closed(window, kept, raw, stretch)
        _sweep(window, kept, stretch.now)
        given.append(tuple(_given(output, raw) for output in window.outputs))
    return tuple(pa.concat_tables(tables) for tables in zip(*given, strict=True))


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Some of the new rows, with their cells and partitions; no row below `now` comes after them."""

    released: Released
    cells: Words
    partitions: Words
    now: int


def _raw(window: SharedWindow, kept: Kept, stretch: _Stretch) -> pa.Table:
    """The results for each new row, or in batches for the newest row of each cell's window."""
    extent, released, cells = window.extent, stretch.released, stretch.cells
    position = released.time if extent.by == "time" else _ordinals(kept, stretch.partitions)
    number = position // extent.size if extent.batch else position
    lower = number * extent.size if extent.batch else position - (extent.size - 1)
    span = _entered(window, kept, stretch, position, lower)
    values = operand_values(window.aggregates.operands, released.rows)
    _keep_values(window, kept, values)
    results = Results(window.aggregates, kept, span, values)
    chosen = _last_of_each(cells, number, kept.keys["cells"].count) if extent.batch else slice(None)
    rows = released.rows.take(pa.array(chosen)) if isinstance(chosen, np.ndarray) else released.rows
    start, end = _bounds(extent, span, released.time, number)
    columns = [
        *(one_chunk(rows.column(name)) for name in window.plain),
        *(results.column(each, chosen) for each in window.aggregates.all),
        *(pa.array(each[chosen]) for each in (cells, stretch.partitions, number, start, end)),
    ]
    raw = pa.table(columns, names=_raw_schema(window).names)
    return decoded(raw, _raw_schema(window)) if extent.batch else raw


def _ordinals(kept: Kept, partitions: Words) -> Words:
    """For each new row its ordinal in its partition."""
    counts = kept.arrays["partitions"]
    counts.extend(kept.keys["partitions"].count)
    position = np.empty(len(partitions), dtype=np.int64)
    kernel.ordinals(partitions, counts["count"], position)
    return position


def _entered(window: SharedWindow, kept: Kept, stretch: _Stretch, position: Words, lower: Words) -> Span:
    """The new rows behind the rows there are, linked into their cells."""
    rows, state, cells = kept.arrays["rows"], kept.arrays["cells"], stretch.cells
    state.extend(kept.keys["cells"].count)
    first = rows.extend(rows.length + len(cells))
    rows["cell"][first : rows.length] = cells
    rows["position"][first : rows.length] = position
    if window.extent.by == "rows":
        rows["time"][first : rows.length] = stretch.released.time
        state["partition"][cells] = stretch.partitions
    low, middle, size = (np.empty(len(cells), dtype=np.int64) for _ in range(3))
    arrays = (rows["position"], rows["following"], rows["before"])
    ends = (state["front"], state["last"], state["middle"], state["size"])
    if window.extent.by == "rows":
        kernel.follow(first, cells, lower, arrays, ends, (low, middle, size))
    else:
        timed, oldest = (*arrays, rows["cell"]), kept.numbers["oldest"]
        kept.numbers["oldest"] = kernel.follow_time(first, cells, lower, timed, ends, (low, middle, size), oldest)
    return Span(first, cells, low, middle, size, rows, state)


def _keep_values(window: SharedWindow, kept: Kept, values: dict[Expression, pa.Array]) -> None:
    if window.aggregates.taken:
        table = kept.tables["values"]
        new = pa.table([values[each] for each in window.aggregates.taken], schema=table.schema)
        kept.tables["values"] = joined(table, new)


def _last_of_each(cells: Words, numbers: Words, count: int) -> Words:
    """The places of the last entry with each cell and number."""
    last = np.empty(len(cells), dtype=np.bool_)
    kernel.last_of_each(cells, numbers, np.full(count, _BEFORE_ALL, dtype=np.int64), last)
    return np.flatnonzero(last)


def _bounds(extent: Extent, span: Span, time: Words, number: Words) -> tuple[Words, Words]:
    """Start and end of the windows; the end of a batch of rows is known when it is full."""
    if extent.by == "rows":
        return span.rows["time"][span.lows], time
    if extent.batch:
        return number * extent.size, (number + 1) * extent.size
    return time - extent.size, time


def _closed(window: SharedWindow, kept: Kept, raw: pa.Table, stretch: _Stretch) -> pa.Table:
    """The results of windows that are full or whose time is over; the others wait."""
    extent = window.extent
    every = pa.concat_tables([kept.tables["pending"], raw]).combine_chunks()
    cells, numbers = (one_chunk(every.column(name)).to_numpy() for name in ("cell", "number"))
    every = every.take(pa.array(_last_of_each(cells, numbers, kept.keys["cells"].count)))
    numbers = one_chunk(every.column("number")).to_numpy()
    if extent.by == "time":
        closed = (numbers + 1) * extent.size <= stretch.now
    else:
        partitions = one_chunk(every.column("partition")).to_numpy()
        closed = kept.arrays["partitions"]["count"][partitions] >= (numbers + 1) * extent.size
    kept.tables["pending"] = every.filter(pa.array(~closed)).combine_chunks()
    ready = every.filter(pa.array(closed))
    return ready if extent.by == "time" else _with_ends(kept, extent, ready, len(stretch.cells))


def _with_ends(kept: Kept, extent: Extent, ready: pa.Table, new: int) -> pa.Table:
    """Full batches of rows with the time of the row that filled them: one of the new rows."""
    rows = kept.arrays["rows"]
    first = rows.length - new
    fills = first + np.flatnonzero(rows["position"][first : rows.length] % extent.size == extent.size - 1)
    owners = kept.arrays["cells"]["partition"][rows["cell"][fills]]
    numbers = KeyNumbers(pa.schema([("partition", pa.int64()), ("number", pa.int64())]))
    filled = numbers.numbers(pa.table({"partition": owners, "number": rows["position"][fills] // extent.size}))
    times = np.empty(len(filled), dtype=np.int64)
    times[filled] = rows["time"][fills]
    ends = times[numbers.numbers(ready.select(["partition", "number"]))]
    return ready.set_column(ready.column_names.index("end"), "end", pa.array(ends, pa.int64()))


def _given(output: Output, raw: pa.Table) -> pa.Table:
    """The output columns of the windows for which `having` and `where` hold."""
    columns: Values = {}
    columns |= {(None, name[1:]): one_chunk(raw.column(name)) for name in raw.column_names if name[0] == "."}
    columns |= {(FOUND, name[1:]): one_chunk(raw.column(name)) for name in raw.column_names if name[0] == FOUND}
    columns |= {("window", name): one_chunk(raw.column(name)).cast(_TIME) for name in ("start", "end")}
    if output.having is not None:
        chosen = pa.array(holds(output.having, columns, raw.num_rows))
        columns = {key: column.filter(chosen) for key, column in columns.items()}
    rows = len(columns["window", "end"])
    arrays = [
        columns[each.event, each.name] if isinstance(each, Attribute) else evaluate(each, columns, rows)
        for _, each in output.select
    ]
    fields = [
        (name, array.type if pa.types.is_dictionary(array.type) else arrow_type(kind))
        for (name, kind), array in zip(output.columns, arrays, strict=True)
    ]
    return filtered(pa.table(arrays, schema=pa.schema(fields)), output.where)


def filtered(rows: pa.Table, where: Expression | None) -> pa.Table:
    """The rows for which a condition over their columns holds."""
    if where is None:
        return rows
    columns: Values = {(None, name): one_chunk(rows.column(name)) for name in rows.column_names}
    return rows.filter(pa.array(holds(where, columns, rows.num_rows)))


def _sweep(window: SharedWindow, kept: Kept, now: int) -> None:
    """Forget rows that no window will see again and cells that have none left, when there may be many of them."""
    rows, state = kept.arrays["rows"], kept.arrays["cells"]
    if rows.length <= 2 * kept.numbers["swept"] + LEAST_SWEPT:
        return
    live = np.empty(rows.length, dtype=np.bool_)
    cells = (state["front"], state["last"], state["size"])
    horizon = _horizon(window.extent, kept, now)
    kernel.still_needed(rows["cell"], rows["position"], horizon, live, cells, rows["following"])
    kept_rows = np.flatnonzero(live)
    kept_cells = np.flatnonzero(state.used("front") != kernel.NONE)
    if not window.cell or 2 * len(kept_cells) > state.length:
        kept_cells = np.arange(state.length)
    row_map, cell_map = place_map(kept_rows, rows.length), place_map(kept_cells, state.length)
    rows.keep(kept_rows)
    state.keep(kept_cells)
    if len(kept_cells) < len(cell_map) - 1:
        kept.keys["cells"].keep(kept_cells)
    for arrays, names in ((rows, ("following", "before")), (state, ("front", "last", "middle"))):
        for array in map(arrays.used, names):
            array[:] = row_map[array]
    rows.used("cell")[:] = cell_map[rows.used("cell")]
    if window.aggregates.taken:
        kept.tables["values"] = kept.tables["values"].take(pa.array(kept_rows)).combine_chunks()
    pending = kept.tables["pending"]
    owners = cell_map[one_chunk(pending.column("cell")).to_numpy()]
    kept.tables["pending"] = pending.set_column(pending.column_names.index("cell"), "cell", pa.array(owners))
    for part in window.aggregates.parts:
        sweep_part(kept, part, row_map, cell_map)
    kept.numbers |= {"swept": rows.length, "oldest": 0}


def _horizon(extent: Extent, kept: Kept, now: int) -> Words:
    """For each cell the position below which no window reaches any more."""
    state = kept.arrays["cells"]
    if extent.by == "time":
        nearest = np.full(state.length, now, dtype=np.int64)
    else:
        nearest = kept.arrays["partitions"]["count"][state["partition"][: state.length]]
    return nearest // extent.size * extent.size if extent.batch else nearest - extent.size + 1
