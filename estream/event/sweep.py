"""Forget what nothing refers to: expired initiators, rows, composites. Costs what was added since the last time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from estream.event import words
from estream.event.compiled import compiled
from estream.event.forget import forget_keys, forget_texts
from estream.event.graph import Graph
from estream.event.kernel_lists import clear, drop_expired, item_field
from estream.event.memory import peek, poke
from estream.event.state import State
from estream.event.words import (
    BUCKET_BITS,
    FOREVER,
    FREE_ITEM,
    ITEM_NEXT,
    ITEM_OCCURRENCE,
    ITEM_WORDS,
    ITEMS,
    NONE,
    PARTS,
    POOL,
    POOL_COUNT,
    POOL_FIRST,
    POOL_WORDS,
    USED,
)

Words = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
RECORDED_MIDDLE = -1
"""Instead of a W: a list of middle events, which is of use while a window waits in the list in front of it."""
SLACK = 1 << 16


@compiled
def drop_useless(m: int, cells: int, count: int, withins: Words, now: int, touched: Words) -> None:
    """Drop what has expired from every list, and note where."""
    for number in range(count):
        cell, within = cells + 16 * number, withins[number % len(withins)]
        if within == RECORDED_MIDDLE:
            if peek(cell, -2) == NONE and peek(cell, 0) != NONE:
                clear(m, cell)
                touched[number // len(withins) >> BUCKET_BITS] = 1
        elif within < FOREVER and peek(cell, 0) != NONE:
            before = peek(m, FREE_ITEM)
            drop_expired(m, cell, now - within)
            if peek(m, FREE_ITEM) != before:
                touched[number // len(withins) >> BUCKET_BITS] = 1


@compiled
def mark(m: int, cells: int, count: int, rows: Flags, composites: Flags) -> None:
    """Mark the rows and composites that waiting items refer to."""
    parts, pool = peek(m, PARTS), peek(m, POOL)
    for number in range(count):
        item = peek(cells, 2 * number)
        while item != NONE:
            occurrence = item_field(m, item, ITEM_OCCURRENCE)
            if occurrence >= 0:
                rows[occurrence] = True
            elif not composites[~occurrence]:
                composites[~occurrence] = True
                first = peek(pool, ~occurrence * POOL_WORDS + POOL_FIRST)
                for position in range(first, first + peek(pool, ~occurrence * POOL_WORDS + POOL_COUNT)):
                    rows[peek(parts, position)] = True
            item = item_field(m, item, ITEM_NEXT)


@compiled
def renumber(m: int, cells: int, count: int, rows: Words, composites: Words) -> None:
    """Let waiting items refer to rows and composites by their new numbers."""
    items = peek(m, ITEMS)
    for number in range(count):
        item = peek(cells, 2 * number)
        while item != NONE:
            occurrence = item_field(m, item, ITEM_OCCURRENCE)
            new = rows[occurrence] if occurrence >= 0 else ~composites[~occurrence]
            poke(items, item * ITEM_WORDS + ITEM_OCCURRENCE, new)
            item = item_field(m, item, ITEM_NEXT)


@compiled
def compact(m: int, live: Flags, rows: Words, composites: Words) -> None:
    """Move the live composites together, with their rows by the new numbers."""
    parts, pool = peek(m, PARTS), peek(m, POOL)
    used, kept = 0, 0
    for number in range(len(live)):
        if not live[number]:
            continue
        first, count = peek(pool, number * POOL_WORDS + POOL_FIRST), peek(pool, number * POOL_WORDS + POOL_COUNT)
        for word in range(POOL_WORDS):
            poke(pool, kept * POOL_WORDS + word, peek(pool, number * POOL_WORDS + word))
        poke(pool, kept * POOL_WORDS + POOL_FIRST, used)
        for position in range(count):
            poke(parts, used + position, rows[peek(parts, first + position)])
        composites[number] = kept
        used += count
        kept += 1
    poke(m, PARTS + USED, used)
    poke(m, POOL + USED, kept * POOL_WORDS)


def withins_of(graph: Graph, group: int, slots: int) -> Words:
    """The W of each slot of a group."""
    withins = np.full(max(slots, 1), FOREVER, dtype=np.int64)
    for node in graph.nodes:
        if node.group == group:
            first = graph.slot_of[node.number]
            if node.within is not None and node.operator not in ("or", "leaf", "relay", "temporal", "pattern"):
                withins[first : first + (2 if node.operator == "and" else 1)] = node.within
            if node.operator == "A*":
                withins[first + 1] = RECORDED_MIDDLE
    return withins


def sweep(graph: Graph, state: State, now: bool = False) -> None:
    """Forget what is of no more use, if enough was added since the last time, or `now`."""
    memory = state.memory
    if not graph.has_nested:
        memory.clear(POOL)
        memory.clear(PARTS)
    added = state.rows.count - state.swept + len(memory.used(POOL)) - state.pooled
    if not now and added < max(SLACK, state.swept + state.pooled):
        return
    listed = [(one.lists.ctypes.data, one.lists.size // 2, one) for one in state.partitions]
    live_rows = np.zeros(state.rows.count, dtype=np.bool_)
    live_composites = np.zeros(len(memory.used(POOL)) // POOL_WORDS, dtype=np.bool_)
    for cells, count, one in listed:
        withins = withins_of(graph, one.group.number, one.group.slots)
        drop_useless(memory.address, cells, count, withins, state.watermark, one.touched)
        mark(memory.address, cells, count, live_rows, live_composites)
    kept = np.flatnonzero(live_rows)
    numbers = np.empty(len(live_rows), dtype=np.int64)
    numbers[kept] = np.arange(len(kept))
    composites = np.empty(len(live_composites), dtype=np.int64)
    compact(memory.address, live_composites, numbers, composites)
    for cells, count, _ in listed:
        renumber(memory.address, cells, count, numbers, composites)
    for one in state.partitions:
        forget_keys(one)
    state.rows.keep(kept)
    forget_texts(graph, state)
    state.rows.expose(memory)
    state.ledger.swept = True
    state.swept, state.pooled = len(kept), int(memory.header[words.POOL + USED])
