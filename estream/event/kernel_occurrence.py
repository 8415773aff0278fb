"""Occurrences as the kernel sees them: a number `>= 0` is a row, `~n` the composite `n` of the pool.

A composite holds its constituents flat, as row numbers in detection order.
"""

from __future__ import annotations

from estream.event.compiled import compiled
from estream.event.memory import call, peek, poke, push, reserve
from estream.event.words import (
    ASKED,
    CONJUNCT_COUNT,
    CONJUNCT_FRAME,
    CONJUNCT_FUNCTION,
    CONJUNCT_KIND,
    CONJUNCT_OPERAND,
    CONJUNCT_WORDS,
    CONJUNCTS,
    EVENT_RANK,
    FIRST_CONJUNCT,
    NODE_WORDS,
    NODES,
    OUT,
    PARTS,
    POOL,
    POOL_COUNT,
    POOL_END,
    POOL_FIRST,
    POOL_MARK,
    POOL_START,
    POOL_WORDS,
    ROW_EVENT,
    ROW_ID,
    ROW_TIME,
    USED,
    WITHIN,
)

EITHER = 1
INITIATOR_WITH = 2
FINISHED = 3
"""Kinds of conjuncts: of one operand, of the initiator with another operand, of the node's finished occurrence."""


@compiled
def field(m: int, node: int, name: int) -> int:
    """A field of a node of the graph."""
    return peek(peek(m, NODES), node * NODE_WORDS + name)


@compiled
def composite(m: int, occurrence: int, name: int) -> int:
    """A field of a composite occurrence."""
    return peek(peek(m, POOL), ~occurrence * POOL_WORDS + name)


@compiled
def start_of(m: int, occurrence: int) -> int:
    """When the occurrence began."""
    if occurrence >= 0:
        return peek(peek(m, ROW_TIME), occurrence)
    return composite(m, occurrence, POOL_START)


@compiled
def end_of(m: int, occurrence: int) -> int:
    """When the occurrence ended."""
    if occurrence >= 0:
        return peek(peek(m, ROW_TIME), occurrence)
    return composite(m, occurrence, POOL_END)


@compiled
def rows_of(m: int, occurrence: int) -> int:
    """How many constituents the occurrence has."""
    if occurrence >= 0:
        return 1
    return composite(m, occurrence, POOL_COUNT)


@compiled
def row_of(m: int, occurrence: int, position: int) -> int:
    """The row number of one constituent."""
    if occurrence >= 0:
        return occurrence
    return peek(peek(m, PARTS), composite(m, occurrence, POOL_FIRST) + position)


@compiled
def append_rows(m: int, array: int, occurrence: int) -> None:
    """Append the constituents to a growable array."""
    if occurrence >= 0:
        push(m, array, occurrence)
        return
    count = composite(m, occurrence, POOL_COUNT)
    reserve(m, array, count)
    used = peek(m, array + USED)
    target = peek(m, array)
    for position in range(count):
        poke(target, used + position, row_of(m, occurrence, position))
    poke(m, array + USED, used + count)


@compiled
def asked(m: int, node: int, kind: int, operand: int, first: int, second: int) -> bool:
    """Whether the node's conjuncts of this kind and operand hold of the constituents of one or two occurrences."""
    count = field(m, node, CONJUNCT_COUNT)
    if count == 0:
        return True
    base = field(m, node, FIRST_CONJUNCT)
    table = peek(m, CONJUNCTS)
    filled = False
    for conjunct in range(base, base + count):
        at = conjunct * CONJUNCT_WORDS
        if peek(table, at + CONJUNCT_KIND) != kind or peek(table, at + CONJUNCT_OPERAND) != operand:
            continue
        if not filled:
            poke(m, ASKED + USED, 0)
            append_rows(m, ASKED, first)
            if kind == INITIATOR_WITH:
                append_rows(m, ASKED, second)
            filled = True
        if call(peek(table, at + CONJUNCT_FUNCTION), m, peek(table, at + CONJUNCT_FRAME), 0) == 0:
            return False
    return True


@compiled
def admits(m: int, node: int, operand: int, occurrence: int) -> bool:
    """Kind 1: whether the occurrence takes part in the role of this operand."""
    return asked(m, node, EITHER, operand, occurrence, occurrence)


@compiled
def touches(m: int, node: int, operand: int, initiator: int, other: int) -> bool:
    """Kind 2: whether the initiator and the occurrence of another operand touch each other."""
    return asked(m, node, INITIATOR_WITH, operand, initiator, other)


@compiled
def signal(m: int, node: int, occurrence: int, start: int, end: int) -> bool:
    """Put an occurrence out of a node, if W and its conjuncts of kind 3 let it."""
    if end - start > field(m, node, WITHIN) or not asked(m, node, FINISHED, 0, occurrence, occurrence):
        return False
    push(m, OUT, occurrence)
    return True


@compiled
def signal_parts(m: int, node: int, first: int, start: int, end: int, mark: int) -> None:
    """Make a composite of all PARTS from `first` on and signal it; what is not signalled leaves no trace."""
    reserve(m, POOL, POOL_WORDS)
    used = peek(m, POOL + USED)
    pool = peek(m, POOL)
    poke(pool, used + POOL_START, start)
    poke(pool, used + POOL_END, end)
    poke(pool, used + POOL_FIRST, first)
    poke(pool, used + POOL_COUNT, peek(m, PARTS + USED) - first)
    poke(pool, used + POOL_MARK, mark)
    poke(m, POOL + USED, used + POOL_WORDS)
    if not signal(m, node, ~(used // POOL_WORDS), start, end):
        poke(m, POOL + USED, used)
        poke(m, PARTS + USED, first)


@compiled
def compare_rows(m: int, one: int, other: int) -> int:
    """The order of two constituents by (id, event name, time): negative, zero or positive."""
    if one == other:
        return 0
    ids = peek(m, ROW_ID)
    if peek(ids, one) != peek(ids, other):
        return -1 if peek(ids, one) < peek(ids, other) else 1
    ranks, events = peek(m, EVENT_RANK), peek(m, ROW_EVENT)
    rank = peek(ranks, peek(events, one)) - peek(ranks, peek(events, other))
    if rank != 0:
        return rank
    times = peek(m, ROW_TIME)
    return peek(times, one) - peek(times, other)


@compiled
def compare(m: int, one: int, other: int) -> int:
    """The order of two occurrences by their constituents."""
    count, other_count = rows_of(m, one), rows_of(m, other)
    for position in range(min(count, other_count)):
        order = compare_rows(m, row_of(m, one, position), row_of(m, other, position))
        if order != 0:
            return order
    return count - other_count


@compiled
def precedes(m: int, one: int, other: int, by_start: bool) -> bool:
    """Canonical order (by start, then constituents), or by constituents, then start."""
    starts = start_of(m, one) - start_of(m, other)
    if by_start:
        return starts < 0 or (starts == 0 and compare(m, one, other) < 0)
    order = compare(m, one, other)
    return order < 0 or (order == 0 and starts < 0)


@compiled
def is_sorted(m: int, array: int, first: int, count: int, by_start: bool) -> bool:
    """Whether a stretch of a growable array of occurrences is in order already, as it mostly is."""
    base = peek(m, array)
    for position in range(first + 1, first + count):
        if precedes(m, peek(base, position), peek(base, position - 1), by_start):
            return False
    return True


@compiled
def sort(m: int, array: int, first: int, count: int, by_start: bool) -> None:
    """Sort a stretch at the end of a growable array of occurrences: merges, bottom up, through the room behind it."""
    if is_sorted(m, array, first, count, by_start):
        return
    reserve(m, array, count)
    base = peek(m, array)
    spare = first + count
    width = 1
    while width < count:
        for left in range(0, count, 2 * width):
            middle, right = min(left + width, count), min(left + 2 * width, count)
            one, other = left, middle
            for target in range(left, right):
                take_one = one < middle and (
                    other >= right or not precedes(m, peek(base, first + other), peek(base, first + one), by_start)
                )
                poke(base, spare + target, peek(base, first + (one if take_one else other)))
                one, other = (one + 1, other) if take_one else (one, other + 1)
        for position in range(count):
            poke(base, first + position, peek(base, spare + position))
        width *= 2


@compiled
def unite(m: int, array: int, first: int, count: int) -> int:
    """Leave of occurrences with the same constituents the one with the least start; gives how many are left."""
    sort(m, array, first, count, False)
    base = peek(m, array)
    kept = 1
    for position in range(1, count):
        occurrence = peek(base, first + position)
        if compare(m, peek(base, first + kept - 1), occurrence) != 0:
            poke(base, first + kept, occurrence)
            kept += 1
    return kept
