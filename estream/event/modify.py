"""Stream modifiers: how much attributes changed between consecutive rows, or from the first to the last of a window.

Windows begin at multiples of `every` since the epoch, with their start and without their end, as those of Spark SQL.
The time of an output row is when it came to be: the newer row's time, or the window's end; `keep` is about the other
columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estream.event import operator_kernel as kernel
from estream.event.columns import one_chunk
from estream.event.evaluate import evaluate
from estream.event.operator_ends import ends_of_windows, link
from estream.event.operator_order import BEGINNING, Released, stretches, with_times
from estream.event.operator_store import Arrays, Kept, KeyNumbers, Words, joined, place_map
from estream.event.operator_text import decoded
from estream.event.rows import arrow_type
from estream.plan.stream_operator import Columns, Modify, StreamOperator
from estream.spec.expression import Attribute, Expression, Literal, Operation
from estream.spec.types import DOUBLE, DataType

Places: TypeAlias = Words | slice
LEAST_SWEPT = 256
"""So few rows are not worth sweeping."""


@dataclass(frozen=True, slots=True)
class Modifier:
    """A modifier with its changes as expressions over an `old` and a `new` row."""

    modify: Modify
    partition: tuple[str, ...]
    source: Columns
    columns: Columns
    time: str
    changes: tuple[tuple[str, Expression], ...]

    @property
    def shape(self) -> str:
        """What the state depends on."""
        return f"modify {self.modify.window} {self.modify.every} {self.partition} {self.source}"


def compile_modify(query: StreamOperator, modify: Modify) -> Modifier:
    """The modifier that a query asks for."""
    kinds = dict(query.source_columns)
    changes = tuple((name, _change(modify, name, kinds)) for name in modify.attributes)
    return Modifier(modify, query.partition, query.source_columns, query.columns, query.source_time, changes)


def _change(modify: Modify, name: str, kinds: dict[str, DataType]) -> Expression:
    """The change of one attribute (docs/ceq.md gives the formulas)."""
    kind = kinds[name]
    if modify.function == "adiff":
        return Operation("-", (Attribute("new", name, kind), Attribute("old", name, kind)), kind)
    base = _double("old", name, kind) if modify.over is None else _difference(modify.over, kinds[modify.over])
    parts: tuple[Expression, ...] = (_difference(name, kind), base)
    if modify.pseudo:
        parts = tuple(Operation("+", (part, Literal(modify.pseudo, DOUBLE)), DOUBLE) for part in parts)
    return Operation("/", parts, DOUBLE)


def _difference(name: str, kind: DataType) -> Expression:
    return Operation("-", (_double("new", name, kind), _double("old", name, kind)), DOUBLE)


def _double(row: str, name: str, kind: DataType) -> Expression:
    attribute = Attribute(row, name, kind)
    return attribute if kind == DOUBLE else Operation("cast", (attribute,), DOUBLE)


def begin_modify(modifier: Modifier) -> Kept:
    """What a modifier keeps before it has seen anything."""
    kinds = {name: arrow_type(kind) for name, kind in modifier.source}
    return Kept(
        keys={"partitions": KeyNumbers(pa.schema([(name, kinds[name]) for name in modifier.partition]))},
        arrays={
            "rows": Arrays(("time", "following", "partition")),
            "partitions": Arrays(("front", "last", "reached")),
        },
        tables={"rows": pa.schema(list(kinds.items())).empty_table()},
        numbers={"swept": 0, "since": BEGINNING},
    )


def step_modify(modifier: Modifier, kept: Kept, released: Released, now: int) -> pa.Table:
    """The changes that rows in order make, where no row below `now` will come any more."""
    modify = modifier.modify
    if modify.until is not None:
        released = released.filter(released.time < modify.until)
        now = min(now, modify.until)
    return pa.concat_tables([_step(modifier, kept, part, below) for part, below in stretches(released, now)])


def _step(modifier: Modifier, kept: Kept, released: Released, now: int) -> pa.Table:
    partitions = kept.keys["partitions"].numbers(released.rows)
    state, rows = kept.arrays["partitions"], kept.arrays["rows"]
    state.extend(kept.keys["partitions"].count)
    first = rows.extend(rows.length + len(partitions))
    kept.tables["rows"] = joined(kept.tables["rows"], decoded(released.rows, kept.tables["rows"].schema))
    if modifier.modify.window is None:
        output = _consecutive(modifier, kept, first, partitions)
    else:
        rows["time"][first : rows.length] = released.time
        rows["partition"][first : rows.length] = partitions
        link(first, partitions, rows["following"], state["front"], state["last"])
        output = _windows(modifier, kept, now)
    _sweep(modifier, kept)
    return output


def _consecutive(modifier: Modifier, kept: Kept, first: int, partitions: Words) -> pa.Table:
    new = np.arange(first, first + len(partitions))
    old = np.empty(len(new), dtype=np.int64)
    kernel.before_in_cell(partitions, new, kept.arrays["partitions"]["last"], old)
    alone = np.flatnonzero(old == kernel.NONE)
    if len(alone) == 0:
        return _changed(modifier, kept.tables["rows"], old, slice(first, first + len(new)), None)
    # Behind the last row that begins a partition all have one before them: they need not be copied.
    rest = int(alone[-1]) + 1
    paired = np.flatnonzero(old[:rest] != kernel.NONE)
    head = _changed(modifier, kept.tables["rows"], old[paired], new[paired], None)
    tail = _changed(modifier, kept.tables["rows"], old[rest:], slice(first + rest, first + len(new)), None)
    return pa.concat_tables([head, tail])


def _windows(modifier: Modifier, kept: Kept, now: int) -> pa.Table:
    modify, rows, state = modifier.modify, kept.arrays["rows"], kept.arrays["partitions"]
    assert modify.window is not None
    assert modify.every is not None
    spec = (modify.window, modify.every, kept.numbers["since"], now)
    cells = (state["front"], state["reached"], state.length)

    out: tuple[Words, ...] = ()
    count = 0
    for counting in (True, False):
        out = tuple(np.empty(count, dtype=np.int64) for _ in range(3))
        count = ends_of_windows(spec, rows["time"], rows["following"], cells, (*out, counting))
    kept.numbers["since"] = max(kept.numbers["since"], now)
    return _changed(modifier, kept.tables["rows"], *out)


def _changed(modifier: Modifier, rows: pa.Table, old: Words, new: Places, times: Words | None) -> pa.Table:
    """Output rows for pairs of rows; `times` where they are not those of the new rows."""
    modify = modifier.modify
    asked = (*modify.attributes, *((modify.over,) if modify.over else ()))
    columns = {
        **{("old", name): _at(rows, name, old) for name in asked},
        **{("new", name): _at(rows, name, new) for name in asked},
    }
    changes = {name: _evaluated(change, columns, len(old)) for name, change in modifier.changes}
    kept_rows = new if modify.keep == "new" else old
    others = {
        name: _at(rows, name, new if name == modifier.time else kept_rows)
        for name, _ in modifier.columns
        if name not in changes
    }
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in modifier.columns])
    table = pa.table([changes.get(name, others.get(name)) for name in schema.names], schema=schema)
    return table if times is None else with_times(table, modifier.time, times)


def _at(rows: pa.Table, name: str, places: Places) -> pa.Array:
    """A column of the rows at some places."""
    column = rows.column(name)
    if isinstance(places, slice):
        return one_chunk(column.slice(places.start, places.stop - places.start))
    return one_chunk(column.take(pa.array(places)))


def _evaluated(change: Expression, columns: dict[tuple[str, str], pa.Array], length: int) -> pa.Array:
    if change.type.name == "decimal" and isinstance(change, Operation):
        # Decimals take part in expressions as doubles; their difference is exact.
        new, old = (columns[each.event or "", each.name] for each in change.operands if isinstance(each, Attribute))
        return pc.subtract(new, old).cast(arrow_type(change.type), safe=False)
    return evaluate(change, {(event, name): column for (event, name), column in columns.items()}, length)


def _sweep(modifier: Modifier, kept: Kept) -> None:
    """Forget rows that no pair needs any more, and partitions that have no rows left."""
    rows, state = kept.arrays["rows"], kept.arrays["partitions"]
    if rows.length <= 2 * kept.numbers["swept"] + LEAST_SWEPT:
        return
    last, front = state["last"][: state.length], state["front"][: state.length]
    if modifier.modify.window is None:
        kept_rows = np.sort(last[last != kernel.NONE])
    else:
        low = front[rows["partition"][: rows.length]]
        kept_rows = np.flatnonzero((low != kernel.NONE) & (np.arange(rows.length) >= low))
        last[front == kernel.NONE] = kernel.NONE
    kept_partitions = np.flatnonzero(last != kernel.NONE) if modifier.partition else np.arange(1)
    row_map, partition_map = place_map(kept_rows, rows.length), place_map(kept_partitions, state.length)
    rows.keep(kept_rows)
    state.keep(kept_partitions)
    if modifier.partition:
        kept.keys["partitions"].keep(kept_partitions)
    for array in (rows.used("following"), state.used("front"), state.used("last"), state.used("reached")):
        array[:] = row_map[array]
    rows.used("partition")[:] = partition_map[rows.used("partition")]
    kept.tables["rows"] = kept.tables["rows"].take(pa.array(kept_rows)).combine_chunks()
    kept.numbers["swept"] = rows.length
