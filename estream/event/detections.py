"""Detections as Arrow: what the kernel found, with ids, and the attributes of the constituents gathered."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event import words
from estream.event.compiled import compiled
from estream.event.graph import Graph
from estream.event.identity import SPREAD, mix, text_hash
from estream.event.kernel_occurrence import end_of, row_of, rows_of, sort, start_of
from estream.event.memory import Memory, Words, peek
from estream.event.rows import Rows
from estream.event.words import OUT, POOL, SPANS
from estream.plan.model import Node, Subscription

Codes = npt.NDArray[np.int32]


@compiled
def count_rows(m: int, found: Words, offsets: Words) -> None:
    """Where the constituents of each found occurrence begin."""
    offsets[0] = 0
    for number in range(len(found)):
        offsets[number + 1] = offsets[number] + rows_of(m, found[number])


@compiled
def spread(
    m: int, found: Words, offsets: Words, name: int, event_names: Words, out: Words, members: Words, codes: Codes
) -> None:
    """Fill start, end and id of each found occurrence, and row number, id, time and event of its constituents."""
    times, ids, events = peek(m, words.ROW_TIME), peek(m, words.ROW_ID), peek(m, words.ROW_EVENT)
    for number in range(len(found)):
        occurrence = found[number]
        end = end_of(m, occurrence)
        out[0, number], out[1, number] = start_of(m, occurrence), end
        hashed = mix(name, end)
        for position in range(offsets[number + 1] - offsets[number]):
            row = row_of(m, occurrence, position)
            event, id_, time = peek(events, row), peek(ids, row), peek(times, row)
            place = offsets[number] + position
            members[0, place], members[1, place], members[2, place], codes[place] = row, id_, time, event
            hashed = mix(hashed, mix(event_names[event] + id_ * SPREAD, time))
        out[2, number] = hashed


@compiled
def found_at(found: Words, node: int) -> Words:
    """The occurrences of one node among what the kernel found."""
    occurrences = np.empty(len(found) // 2, dtype=np.int64)
    count = 0
    for place in range(0, len(found), 2):
        occurrences[count] = found[place + 1]
        count += found[place] == node
    return occurrences[:count]


def gather(graph: Graph, memory: Memory, rows: Rows, found: Words) -> pa.Table:
    """The detections among what the kernel found, as a table of `detection_schema`."""
    tables = [_table(graph, memory, rows, one, found_at(found, one.node)) for one in graph.subscriptions]
    return pa.concat_tables(tables) if tables else pa.table({})


def _table(graph: Graph, memory: Memory, rows: Rows, subscription: Subscription, found: Words) -> pa.Table:
    offsets = np.empty(len(found) + 1, dtype=np.int64)
    count_rows(memory.address, found, offsets)
    out = np.empty((3, len(found)), dtype=np.int64)
    members, codes = np.empty((3, int(offsets[-1])), dtype=np.int64), np.empty(int(offsets[-1]), dtype=np.int32)
    event_names = np.array([text_hash(name) for name in graph.events] or [0], dtype=np.int64)
    spread(memory.address, found, offsets, text_hash(subscription.event), event_names, out, members, codes)
    start, end, ids = (pa.array(column) for column in out)
    return pa.table(
        {
            "event": _constant(subscription.event, len(found)),
            "start": start,
            "end": end,
            "id": ids,
            "constituents": pa.LargeListArray.from_arrays(pa.array(offsets), _members(graph, rows, members, codes)),
            **_ticks(graph.nodes[subscription.node], memory, found, out[1]),
            "context": pa.repeat(pa.scalar(subscription.context, pa.string()), len(found)),
        }
    )


def _constant(name: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), pa.array([name], pa.string()))


def _members(graph: Graph, rows: Rows, members: Words, codes: Codes) -> pa.StructArray:
    """The constituents one after the other: event, id, time and attributes."""
    numbers, ids, times = (pa.array(column) for column in members)
    names = pa.array(list(graph.events), pa.string())
    columns = {"event": pa.DictionaryArray.from_arrays(pa.array(codes), names), "id": ids, "time": times}
    taken = rows.table.take(numbers).combine_chunks()
    for position, name in enumerate(rows.attributes.names):
        column = taken.column(position)
        columns[name] = column.chunk(0) if column.num_chunks else column.combine_chunks()
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def _ticks(node: Node, memory: Memory, found: Words, ends: Words) -> dict[str, pa.Array]:
    """`tick` of a P, `ticks` of a P*: null for every other event."""
    tick = pa.nulls(len(found), pa.int64())
    ticks = pa.nulls(len(found), pa.list_(pa.int64()))
    marks = memory.used(POOL)[~found * words.POOL_WORDS + words.POOL_MARK] if node.operator in ("P", "P*") else None
    if node.operator == "P":
        tick = pa.array(marks)
    elif node.operator == "P*" and marks is not None:
        ticks = pa.array([_tick_times(memory.used(SPANS), int(mark), node.duration or 1) for mark in marks], ticks.type)
    return {"tick": tick, "ticks": ticks}


def _tick_times(spans: Words, mark: int, duration: int) -> npt.NDArray[np.int64]:
    last, count = int(spans[mark]), int(spans[mark + 1])
    begun = spans[mark + 2 : mark + 2 + count]
    return np.sort(np.concatenate([np.arange(first + duration, last + 1, duration) for first in begun]))


@compiled
def last_rows(m: int, occurrences: Words, leaves: int) -> tuple[Words, Words, Words]:
    """The last constituent that is not temporal of each occurrence (events below `leaves`), its end, and its turn.

    The turn is the row that completed it, or NONE if that was a timer or a temporal event.
    """
    found = np.empty((3, len(occurrences)), dtype=np.int64)
    events, times = peek(m, words.ROW_EVENT), peek(m, words.ROW_TIME)
    for number in range(len(occurrences)):
        occurrence = occurrences[number]
        end, position = end_of(m, occurrence), rows_of(m, occurrence) - 1
        by = row_of(m, occurrence, position)
        found[2, number] = by if peek(events, by) < leaves and peek(times, by) == end else words.NONE
        while position > 0 and peek(events, row_of(m, occurrence, position)) >= leaves:
            position -= 1
        found[0, number], found[1, number] = row_of(m, occurrence, position), end
    return found[0], found[1], found[2]


def ranks_of(memory: Memory, occurrences: Words) -> Words:
    """The place of each occurrence in canonical order."""
    memory.fill(OUT, occurrences)
    sort(memory.address, OUT, 0, len(occurrences), True)
    ranks = np.empty(len(occurrences), dtype=np.int64)
    ranks[np.argsort(occurrences)] = np.argsort(memory.used(OUT))
    memory.clear(OUT)
    return ranks
