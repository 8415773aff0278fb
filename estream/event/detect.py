"""`step`: one batch of primitive occurrences through the graph, up to a watermark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event import words
from estream.event.columns import nulls_of, one_chunk, words_of
from estream.event.columns_order import sorted_places
from estream.event.detections import found_at, gather, last_rows, ranks_of
from estream.event.graph import Graph
from estream.event.kernel import UNBORN, run
from estream.event.order import Released, release
from estream.event.pattern_detect import match_patterns, put_matches
from estream.event.relayed import take_relayed
from estream.event.state import Partitions, State
from estream.event.sweep import sweep
from estream.event.temporal import temporal_rows
from estream.event.words import FOREVER, FOUND
from estream.plan.model import Node

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Step:
    """What a step gives: the detections, and the rows that came too late."""

    detections: pa.Table
    late: pa.Table


@dataclass(frozen=True, slots=True)
class Input:
    """What comes into a group in a step, one entry per occurrence."""

    times: Words
    keys: Words
    leaves: Words
    occurrences: Words
    ranks: Words
    """Canonical order of the occurrences of one leaf and time: of rows the id."""
    turns: Words
    """In `order: arrival` the row whose epoch it is, or NONE if it is that of the timers of its time."""


def step(
    graph: Graph,
    state: State,
    batch: pa.Table,
    watermark: int,
    end_of_input: bool = False,
    *,
    first: int | None = None,
    relayed: Mapping[int, pa.Table] | None = None,
) -> Step:
    """Take a batch in and detect all that ends before the watermark; with `end_of_input`, all there is.

    `batch` has the schema `estream.event.rows.batch_schema(graph)`. At the end of input the watermark is T, the
    greatest row time of the run, rows that this graph does not see included: ticks and temporal events end there,
    other timers act whenever they are due. `first` is the time of the run's first row, after which `every` and `cron`
    begin; without it, the first row of the graph. `relayed` are detections of other graphs that end before the
    watermark, by the node they stand for here.
    """
    state.first = state.first if first is None else first
    released = release(graph, state, batch, FOREVER if end_of_input else watermark)
    released, matched = match_patterns(state, released)
    limit = state.watermark
    last = max(state.greatest, watermark) if end_of_input else FOREVER
    first_row = state.rows.append(released.event, released.time, released.id, released.attributes)
    temporal = temporal_rows(graph, state, released.since, min(limit, last + 1))
    memory = state.memory
    memory.header[words.LAST_TICK] = last
    memory.clear(FOUND)
    memory.clear(words.SPANS)
    take_relayed(graph, state, relayed or {})
    put_matches(graph, state, matched)
    state.rows.expose(memory)
    for partitions in state.partitions:
        _run(graph, state, partitions, released, first_row, temporal, limit)
    detections = gather(graph, memory, state.rows, memory.used(FOUND))
    sweep(graph, state)
    return Step(detections, released.late)


def _run(
    graph: Graph, state: State, partitions: Partitions, released: Released, first: int, temporal: Words, limit: int
) -> None:
    """Run one group."""
    memory, group = state.memory, partitions.group
    parts = [_rows_in(graph, state, partitions, released, first)]
    parts += [_relayed(graph, state, partitions, node) for node in group.inputs if node.operator == "relay"]
    given = _ordered(_join(parts), graph.arrival)
    partitions.extend()
    partitions.temporal_next[partitions.temporal_next != UNBORN] = 0
    leaves = {node.source: node.number for node in group.temporals}
    fed = np.array(
        [
            (leaves[graph.events[state.rows.event[row]]], row)
            for row in temporal
            if graph.events[state.rows.event[row]] in leaves
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    memory.point(words.TEMPORAL, fed)
    memory.header[words.TEMPORAL_COUNT] = len(fed)
    partitions.expose(memory)
    # About one detection of two rows for each occurrence that comes in.
    for array, words_each in ((words.POOL, words.POOL_WORDS), (words.PARTS, 2), (FOUND, words.FOUND_WORDS)):
        memory.foresee(array, words_each * len(given.times))
    run(
        memory.address,
        given.times.ctypes.data,
        given.keys.ctypes.data,
        given.leaves.ctypes.data,
        given.occurrences.ctypes.data,
        given.turns.ctypes.data if graph.arrival else 0,
        len(given.times),
        limit,
    )


def _rows_in(graph: Graph, state: State, partitions: Partitions, released: Released, first: int) -> Input:
    """The rows whose event is a leaf of the group, with their partitions."""
    group = partitions.group
    by_event = np.full(len(graph.events) + 1, -1, dtype=np.int64)
    for node in group.inputs:
        if node.operator == "leaf":
            by_event[graph.event_code(node.source or "")] = node.number
    leaves = by_event[released.event]
    rows = np.arange(first, first + len(leaves))
    times, ids, attributes = released.time, released.id, released.attributes
    inside = leaves >= 0
    if not inside.all():
        leaves, rows, times, ids = leaves[inside], rows[inside], times[inside], ids[inside]
        attributes = attributes.filter(pa.array(inside)) if group.is_keyed else attributes
    keys = _keys(graph, state, partitions, leaves, attributes)
    return _input(state, Input(times, keys, leaves, rows, ids, turns=rows))


def _input(state: State, given: Input) -> Input:
    """The entries that have a partition; the others are counted."""
    placed = given.keys >= 0
    if placed.all():
        return given
    state.counts["null_key"] += int((~placed).sum())
    return Input(*(column[placed] for column in _columns(given)))


def _keys(graph: Graph, state: State, partitions: Partitions, leaves: Words, attributes: pa.Table) -> Words:
    """The partitions of entries by the key attributes of their leaves; -1 where one is null."""
    group, count = partitions.group, len(leaves)
    if not group.is_keyed:
        return np.zeros(count, dtype=np.int64)
    missing: npt.NDArray[np.bool_] | None = None
    columns: list[Words] = []
    for position in range(len(partitions.keys.tables)):
        values, absent = _key_column(graph, state, group.inputs, position, leaves, attributes)
        columns.append(values)
        if absent is not None:
            missing = absent if missing is None else missing | absent
    return partitions.keys.numbers(columns, missing, count)


def _key_column(
    graph: Graph, state: State, inputs: tuple[Node, ...], position: int, leaves: Words, attributes: pa.Table
) -> tuple[Words, npt.NDArray[np.bool_] | None]:
    """The words of one key attribute, which may be another column for each leaf."""
    by_column: dict[int, list[int]] = {}
    for node in inputs:
        if node.operator == "leaf":
            by_column.setdefault(graph.column_of(node.source or "", node.key[position]), []).append(node.number)
    values: Words = np.zeros(len(leaves), dtype=np.int64)
    missing = None
    for column, nodes in by_column.items():
        array = one_chunk(attributes.column(column))
        words_here, nulls_here = words_of(array, state.texts), nulls_of(array)
        if len(by_column) == 1:
            return words_here, nulls_here
        here = np.isin(leaves, nodes)
        values = np.where(here, words_here, values)
        if nulls_here is not None:
            missing = (here & nulls_here) if missing is None else missing | (here & nulls_here)
    return values, missing


def _relayed(graph: Graph, state: State, partitions: Partitions, node: Node) -> Input:
    """What a group below has found in this step, partitioned by the last constituent."""
    occurrences = found_at(state.memory.used(FOUND), node.operands[0])
    last, ends, turns = last_rows(state.memory.address, occurrences, len(graph.leaves))
    keys = np.zeros(len(occurrences), dtype=np.int64)
    if partitions.group.is_keyed:
        keys = _relay_keys(graph, state, partitions, node, last)
    leaves = np.full(len(occurrences), node.number, dtype=np.int64)
    ranks = ranks_of(state.memory, occurrences)
    return _input(state, Input(ends, keys, leaves, occurrences, ranks, turns))


def _relay_keys(graph: Graph, state: State, partitions: Partitions, node: Node, last: Words) -> Words:
    """Partitions by attributes of the last constituents, which may be rows of several leaves."""
    events = state.rows.event[last]
    missing = np.zeros(len(last), dtype=np.bool_)
    keys = dict(node.keys)
    columns = []
    for position in range(partitions.group.key_length):
        values = np.zeros(len(last), dtype=np.int64)
        for code in np.unique(events):
            here = np.flatnonzero(events == code)
            if code >= len(graph.leaves):
                missing[here] = True
                continue
            name = graph.events[code]
            column = graph.column_of(name, keys.get(name, node.key)[position])
            array = one_chunk(state.rows.table.column(column).take(pa.array(last[here])))
            values[here] = words_of(array, state.texts)
            nulls = nulls_of(array)
            if nulls is not None:
                missing[here] |= nulls
        columns.append(values)
    return partitions.keys.numbers(columns, missing, len(last))


def _join(parts: list[Input]) -> Input:
    if len(parts) == 1:
        return parts[0]
    return Input(*(np.concatenate(columns) for columns in zip(*(_columns(part) for part in parts), strict=True)))


def _columns(part: Input) -> tuple[Words, ...]:
    return part.times, part.keys, part.leaves, part.occurrences, part.ranks, part.turns


def _ordered(given: Input, arrival: bool) -> Input:
    """By (time, partition, leaf, canonical order); with `arrival` by the turn first among those of one time."""
    if arrival:
        places = np.lexsort((given.ranks, given.leaves, given.keys, given.turns, given.times))
    else:
        sort = sorted_places(given.times, given.keys, given.leaves, given.ranks)
        if sort is None:
            return given
        places = sort
    return Input(*(column[places] for column in _columns(given)))
