"""Sequences of rows, the most frequent node, without the detours of the general case.

A node is PLAIN if it is a `;` whose operands are leaves and that asks nothing of its pairs. What waits there are rows:
each begins and ends at one time, so «before», W and the order of the list are all the same comparison. It does what
`kernel_roles.meet` and `kernel_nodes.install` do.
"""

from __future__ import annotations

from estream.event.compiled import compiled
from estream.event.kernel_lists import append, cell_of, item_field
from estream.event.kernel_occurrence import field
from estream.event.memory import peek, poke, reserve
from estream.event.words import (
    CHRONICLE,
    CONTEXT,
    CUMULATIVE,
    FIRST_OPERAND,
    FOUND,
    FOUND_WORDS,
    FREE_ITEM,
    ITEM_END,
    ITEM_NEXT,
    ITEM_OCCURRENCE,
    ITEM_START,
    ITEM_WORDS,
    ITEMS,
    NONE,
    OPERANDS,
    PARTS,
    POOL,
    POOL_COUNT,
    POOL_END,
    POOL_FIRST,
    POOL_MARK,
    POOL_START,
    POOL_WORDS,
    RECENT,
    SLOT,
    UNRESTRICTED,
    USED,
    WITHIN,
)


@compiled
def drop_front(m: int, cell: int, first: int, last: int) -> None:
    """Take the items from the first of a list up to `last` out of it."""
    place = peek(m, ITEMS) + 8 * (last * ITEM_WORDS + ITEM_NEXT)
    after = peek(place, 0)
    poke(place, 0, peek(m, FREE_ITEM))
    poke(m, FREE_ITEM, first)
    poke(cell, 0, after)
    if after == NONE:
        poke(cell, 1, NONE)


@compiled
def drop_old(m: int, cell: int, horizon: int) -> int:
    """Drop what began before `horizon`, which stands at the front; gives the item that is first then."""
    first = item = peek(cell, 0)
    last = NONE
    while item != NONE and item_field(m, item, ITEM_END) < horizon:
        last = item
        item = item_field(m, item, ITEM_NEXT)
    if last != NONE:
        drop_front(m, cell, first, last)
    return item


@compiled
def found(m: int, node: int, start: int, end: int, first: int, count: int) -> None:
    """Let an occurrence made of PARTS leave the kernel."""
    reserve(m, POOL, POOL_WORDS)
    used = peek(m, POOL + USED)
    pool = peek(m, POOL) + 8 * used
    poke(pool, POOL_START, start)
    poke(pool, POOL_END, end)
    poke(pool, POOL_FIRST, first)
    poke(pool, POOL_COUNT, count)
    poke(pool, POOL_MARK, NONE)
    poke(m, POOL + USED, used + POOL_WORDS)
    reserve(m, FOUND, FOUND_WORDS)
    place = peek(m, FOUND) + 8 * peek(m, FOUND + USED)
    poke(place, 0, node)
    poke(place, 1, ~(used // POOL_WORDS))
    poke(m, FOUND + USED, peek(m, FOUND + USED) + FOUND_WORDS)


@compiled
def pair(m: int, node: int, item: int, row: int, now: int) -> None:
    """Detect an initiator with a terminator."""
    reserve(m, PARTS, 2)
    first = peek(m, PARTS + USED)
    parts = peek(m, PARTS) + 8 * first
    poke(parts, 0, item_field(m, item, ITEM_OCCURRENCE))
    poke(parts, 1, row)
    poke(m, PARTS + USED, first + 2)
    found(m, node, item_field(m, item, ITEM_START), now, first, 2)


@compiled
def merge(m: int, node: int, item: int, row: int, now: int) -> int:
    """Detect all initiators with a terminator at once; gives the last of them."""
    start, last, count = item_field(m, item, ITEM_START), NONE, 1
    first = peek(m, PARTS + USED)
    while item != NONE and item_field(m, item, ITEM_END) < now:
        reserve(m, PARTS, 2)
        poke(peek(m, PARTS), first + count - 1, item_field(m, item, ITEM_OCCURRENCE))
        poke(m, PARTS + USED, first + count)
        last = item
        count += 1
        item = item_field(m, item, ITEM_NEXT)
    poke(peek(m, PARTS), first + count - 1, row)
    poke(m, PARTS + USED, first + count)
    found(m, node, start, now, first, count)
    return last


@compiled
def terminate(m: int, node: int, cell: int, row: int, now: int) -> None:
    """Let a row meet the initiators that wait."""
    first = item = drop_old(m, cell, now - field(m, node, WITHIN))
    if item == NONE or item_field(m, item, ITEM_END) >= now:
        return
    context = field(m, node, CONTEXT)
    if context == CUMULATIVE:
        drop_front(m, cell, first, merge(m, node, item, row, now))
        return
    last = NONE
    while item != NONE and item_field(m, item, ITEM_END) < now:
        pair(m, node, item, row, now)
        last = item
        item = NONE if context == CHRONICLE else item_field(m, item, ITEM_NEXT)
    if context not in (UNRESTRICTED, RECENT):
        drop_front(m, cell, first, last)


@compiled
def initiate(m: int, node: int, cell: int, row: int, now: int) -> None:
    """Let a row wait."""
    item = peek(cell, 0)
    if item == NONE or field(m, node, CONTEXT) != RECENT:
        append(m, cell, row, now, now)
        return
    place = peek(m, ITEMS) + 8 * item * ITEM_WORDS
    poke(place, ITEM_OCCURRENCE, row)
    poke(place, ITEM_START, now)
    poke(place, ITEM_END, now)


@compiled
def sequence_row(m: int, node: int, leaf: int, key: int, row: int, now: int) -> None:
    """A row that is alone in its epoch, at a PLAIN node: it terminates first, then initiates."""
    cell = cell_of(m, key, field(m, node, SLOT))
    operands = peek(m, OPERANDS) + 8 * field(m, node, FIRST_OPERAND)
    if peek(operands, 1) == leaf:
        terminate(m, node, cell, row, now)
    if peek(operands, 0) == leaf:
        initiate(m, node, cell, row, now)
