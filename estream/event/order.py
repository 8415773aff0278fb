"""Which rows of a batch are processed in this step: those the watermark has passed, each once, in order of time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.batch import fitted
from estream.event.columns import one_chunk
from estream.event.columns_order import ASCENDING, order_of, repeated, sorted_places
from estream.event.identity import row_ids
from estream.event.state import BEGINNING

Words = npt.NDArray[np.int64]


class Ordered(Protocol):
    """What rows are put in order for: a graph, or a pattern."""

    @property
    def arrival(self) -> bool:
        """Whether rows are taken as they come."""
        ...


class Waits(Protocol):
    """A state that keeps rows waiting for the watermark."""

    waiting: pa.Table
    watermark: int
    first: int | None
    greatest: int
    counts: Counter[str]


@dataclass(frozen=True, slots=True)
class Released:
    """Rows to process, in ascending time; `since` is the watermark before the step."""

    event: Words
    time: Words
    id: Words
    attributes: pa.Table
    late: pa.Table
    since: int


def release(graph: Ordered, state: Waits, batch: pa.Table, watermark: int) -> Released:
    """Take the batch in, move the watermark, and give what may be processed now."""
    since = state.watermark
    rows = fitted(batch, state.waiting.schema, state.counts)
    late = rows.slice(0, 0)
    if graph.arrival:
        ready = rows
    else:
        rows, late = _split(rows, _words(rows, "time") >= since)
        state.counts["late"] += late.num_rows
        rows = pa.concat_tables([state.waiting, rows]).combine_chunks() if state.waiting.num_rows else rows
        ready, state.waiting = _split(rows, _words(rows, "time") < watermark)
        ready = _distinct(state, ready)
    time = _words(ready, "time")
    if graph.arrival and len(time):
        time = np.maximum.accumulate(np.maximum(time, state.greatest))
    if len(time):
        state.first = int(time[0]) if state.first is None else state.first
        state.greatest = max(state.greatest, int(time[-1]))
    # In the order of arrival a row moves time for all partitions: what is due up to it is not to wait.
    state.watermark = max(since, watermark, state.greatest + 1 if graph.arrival else BEGINNING)
    attributes = ready.select(range(3, ready.num_columns))
    return Released(_words(ready, "event"), time, _words(ready, "id"), attributes, late, since)


def _words(rows: pa.Table, name: str) -> Words:
    return np.asarray(one_chunk(rows.column(name)).to_numpy(), dtype=np.int64)


def _split(rows: pa.Table, chosen: npt.NDArray[np.bool_]) -> tuple[pa.Table, pa.Table]:
    """The rows that are chosen, and the others."""
    if chosen.all():
        return rows, rows.slice(0, 0)
    return rows.filter(pa.array(chosen)), rows.filter(pa.array(~chosen))


def _distinct(state: Waits, rows: pa.Table) -> pa.Table:
    """In ascending time, and of rows with the same event, time and id that with the least hash of all attributes."""
    time = _words(rows, "time")
    if order_of(time) == ASCENDING:
        return rows
    event, ids = _words(rows, "event"), _words(rows, "id")
    places = sorted_places(time, event, ids, ids)
    assert places is not None
    again = repeated(places, time, event, ids)
    if again.any():
        hashes = row_ids(rows, rows.column_names[3:])
        sort = sorted_places(time, event, ids, hashes)
        assert sort is not None
        places = sort[~again]
        state.counts["duplicate"] += int(again.sum())
    elif (time[1:] >= time[:-1]).all():
        return rows
    return rows.take(pa.array(places)).combine_chunks()
