"""The rows a stream operator may process: those the watermark has passed, in an order that arrival does not change.

Rows go by time, and those of one time by the hash of all their columns. Rows that are equal in every column are rows
of their own, as in SQL: which of them goes first makes no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from estream.event.columns import Texts, one_chunk, words_of
from estream.event.columns_order import ASCENDING, UNSORTED, order_of, sort_ties
from estream.event.identity import row_ids
from estream.event.operator_text import decoded
from estream.event.words import FOREVER

Words = npt.NDArray[np.int64]
STRETCH = 32_768
"""Rows that operators take at once."""
BEGINNING = -FOREVER
"""The watermark before anything was seen."""


@dataclass(slots=True)
class Buffer:
    """Rows above the watermark, and what became of those that took no part."""

    waiting: pa.Table
    late: pa.Table
    """The rows of the last step that came too late."""
    watermark: int = BEGINNING
    greatest: int = BEGINNING
    """The greatest row time processed."""
    counts: Counter[str] = field(default_factory=Counter)
    """`late`, `null_time`, `null_key`."""


@dataclass(frozen=True, slots=True)
class Released:
    """Rows to process in order, with their times in microseconds."""

    time: Words
    rows: pa.Table

    def filter(self, chosen: npt.NDArray[np.bool_]) -> Released:
        """Those that are chosen."""
        return self if chosen.all() else Released(self.time[chosen], self.rows.filter(pa.array(chosen)))


def stretches(released: Released, now: int) -> Iterator[tuple[Released, int]]:
    """Rows in parts that stay in the processor's cache, each with the time that no row after it is below."""
    count = len(released.time)
    for start in range(0, max(count, 1), STRETCH):
        end = start + STRETCH
        part = Released(released.time[start:end], released.rows.slice(start, STRETCH))
        yield part, now if end >= count else int(released.time[end])


def times_of(rows: pa.Table, column: str) -> Words:
    """A time column in microseconds; those of nulls mean nothing."""
    return words_of(one_chunk(rows.column(column)), Texts())


def release(buffer: Buffer, batch: pa.Table, time: str, watermark: int, arrival: bool) -> Released:
    """Take a batch in, move the watermark, and give what may be processed now; with `arrival` all, as it came."""
    batch = _with_time(buffer, batch, time)
    if arrival:
        buffer.watermark = max(buffer.watermark, watermark)
        return _as_it_came(buffer, batch, time)
    since, buffer.watermark = buffer.watermark, max(buffer.watermark, watermark)
    on_time = times_of(batch, time) >= since
    buffer.late = batch.filter(pa.array(~on_time)) if not on_time.all() else batch.slice(0, 0)
    buffer.counts["late"] += buffer.late.num_rows
    rows = batch if on_time.all() else batch.filter(pa.array(on_time))
    if buffer.waiting.num_rows:
        rows = pa.concat_tables([buffer.waiting, decoded(rows, buffer.waiting.schema)]).combine_chunks()
    times = times_of(rows, time)
    ready = times < buffer.watermark
    if not ready.all():
        buffer.waiting = decoded(rows.filter(pa.array(~ready)), buffer.waiting.schema)
        rows, times = rows.filter(pa.array(ready)), times[ready]
    else:
        buffer.waiting = buffer.waiting.slice(0, 0)
    return _ordered(buffer, rows, times)


def _with_time(buffer: Buffer, batch: pa.Table, time: str) -> pa.Table:
    missing = batch.column(time).null_count
    if missing == 0:
        return batch
    buffer.counts["null_time"] += missing
    return batch.filter(pc.is_valid(batch.column(time)))


def _as_it_came(buffer: Buffer, batch: pa.Table, time: str) -> Released:
    """Time never goes back: a row that is behind takes the time of the row before it."""
    own = times_of(batch, time)
    if len(own) == 0:
        return Released(own, batch)
    times = np.maximum.accumulate(np.maximum(own, buffer.greatest))
    buffer.greatest = int(times[-1])
    return Released(times, batch if (times == own).all() else with_times(batch, time, times))


def with_times(rows: pa.Table, column: str, times: Words) -> pa.Table:
    """The rows with other times."""
    place = rows.column_names.index(column)
    return rows.set_column(place, rows.schema.field(place), pa.array(times).cast(rows.schema.field(place).type))


def _ordered(buffer: Buffer, rows: pa.Table, times: Words) -> Released:
    order = order_of(times)
    if order != ASCENDING:
        places = np.argsort(times, kind="stable") if order == UNSORTED else np.arange(len(times))
        hashes = _hashes(rows, times, places)
        if hashes is not None:
            sort_ties(places, times, hashes, hashes, hashes)
        rows, times = rows.take(pa.array(places)), times[places]
    if len(times):
        buffer.greatest = max(buffer.greatest, int(times[-1]))
    return Released(times, rows)


def _hashes(rows: pa.Table, times: Words, places: Words) -> Words | None:
    """The hashes of rows that share their time with another; None if none does."""
    same = times[places[1:]] == times[places[:-1]]
    if not same.any():
        return None
    tied = places[np.append(same, False) | np.append(False, same)]
    hashes = np.zeros(len(times), dtype=np.int64)
    hashes[tied] = row_ids(rows.take(pa.array(tied)), rows.column_names)
    return hashes
