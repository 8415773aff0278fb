"""One row for each value of some columns: the first or the last, of all rows or of each window.

The last of each window in batches is a window with groups: `compile_unique` gives it as such.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from estream.event import operator_kernel as kernel
from estream.event.operator_order import Released
from estream.event.operator_store import Arrays, Flags, Kept, KeyNumbers, Words
from estream.event.rows import arrow_type
from estream.plan.stream_operator import Columns, Extent, StreamOperator, Unique, Window
from estream.spec.expression import Attribute
from estream.spec.types import TIMESTAMP

LEAST_SWEPT = 256
"""So few values are not worth sweeping."""
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class FirstOrLast:
    """Rows that go through as they are."""

    unique: Unique
    partition: tuple[str, ...]
    columns: tuple[str, ...]
    """The columns a value is known by: those of the partition too."""
    source: Columns

    @property
    def shape(self) -> str:
        """What the state depends on."""
        return f"unique {self.unique} {self.partition} {self.source}"


def compile_unique(query: StreamOperator, unique: Unique) -> FirstOrLast | StreamOperator:
    """What picks the rows; for the last row of each batch the window that gives the same."""
    if unique.keep == "first" or unique.extent is None:
        columns = tuple(dict.fromkeys((*query.partition, *unique.columns)))
        return FirstOrLast(unique, query.partition, columns, query.source_columns)
    select = tuple(
        (name, Attribute("window", "end", TIMESTAMP) if name == query.source_time else Attribute(None, name, kind))
        for name, kind in query.source_columns
    )
    return replace(query, operation=Window(unique.extent, select, None, unique.columns))


def begin_unique(unique: FirstOrLast) -> Kept:
    """What is kept before anything was seen."""
    kinds = {name: arrow_type(kind) for name, kind in unique.source}
    return Kept(
        keys={
            "values": KeyNumbers(pa.schema([(name, kinds[name]) for name in unique.columns])),
            "partitions": KeyNumbers(pa.schema([(name, kinds[name]) for name in unique.partition])),
        },
        arrays={"values": Arrays(("partition", "position")), "partitions": Arrays(counters=("count",))},
        numbers={"swept": 0},
    )


def step_unique(unique: FirstOrLast, kept: Kept, released: Released, now: int) -> pa.Table:
    """The rows in order that go through, where no row below `now` will come any more."""
    if unique.unique.keep == "last":
        return _last(unique, released)
    values = kept.keys["values"]
    before = values.count
    numbers = values.numbers(released.rows)
    extent = unique.unique.extent
    if extent is None:
        highest = np.maximum.accumulate(np.append(before - 1, numbers[:-1])) if len(numbers) else numbers
        return released.filter(numbers > highest).rows
    chosen = _first_in_window(extent, kept, numbers, released)
    _sweep(unique, extent, kept, now)
    return released.filter(chosen).rows


def _last(unique: FirstOrLast, released: Released) -> pa.Table:
    """Of rows with the same time and value the last: a later one takes the place of an earlier one."""
    keys = KeyNumbers(released.rows.select(unique.columns).schema)
    numbers = keys.numbers(released.rows)
    last = np.empty(len(numbers), dtype=np.bool_)
    kernel.last_of_each(numbers, released.time, np.full(keys.count, _NEVER, dtype=np.int64), last)
    return released.filter(last).rows


def _first_in_window(extent: Extent, kept: Kept, numbers: Words, released: Released) -> Flags:
    """Which rows have no row of the same value before them in their window."""
    values = kept.arrays["values"]
    known = values.extend(kept.keys["values"].count)
    values["position"][known : values.length] = _NEVER
    position = released.time
    if extent.by == "rows":
        partitions, counts = kept.keys["partitions"].numbers(released.rows), kept.arrays["partitions"]
        counts.extend(kept.keys["partitions"].count)
        position = np.empty(len(numbers), dtype=np.int64)
        kernel.ordinals(partitions, counts["count"], position)
        values["partition"][numbers] = partitions
    lower = position // extent.size * extent.size if extent.batch else position - (extent.size - 1)
    previous = np.empty(len(numbers), dtype=np.int64)
    kernel.before_in_cell(numbers, position, values["position"], previous)
    first: Flags = previous < lower
    return first


def _sweep(unique: FirstOrLast, extent: Extent, kept: Kept, now: int) -> None:
    """Forget values that are in no window any more."""
    values = kept.arrays["values"]
    if values.length <= 2 * kept.numbers["swept"] + LEAST_SWEPT:
        return
    nearest: Words | int = now
    if extent.by == "rows":
        nearest = kept.arrays["partitions"]["count"][values["partition"][: values.length]]
    horizon = nearest // extent.size * extent.size if extent.batch else nearest - extent.size + 1
    places = np.flatnonzero(values["position"][: values.length] >= horizon)
    values.keep(places)
    kept.keys["values"].keep(places)
    kept.numbers["swept"] = len(places)
