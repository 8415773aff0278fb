"""Lists of what waits, one per (partition, slot of a node), and when a partition's next timer is due."""

from __future__ import annotations

from estream.event.compiled import compiled
from estream.event.kernel_occurrence import field
from estream.event.memory import peek, poke, reserve
from estream.event.words import (
    DUE,
    DURATION,
    FOREVER,
    FREE_ITEM,
    ITEM_END,
    ITEM_NEXT,
    ITEM_OCCURRENCE,
    ITEM_START,
    ITEM_WORDS,
    ITEMS,
    LAST_TICK,
    LISTS,
    NONE,
    OPERATOR,
    SLOT,
    SLOTS,
    TIMERS,
    TIMERS_COUNT,
    USED,
    P,
)


@compiled
def cell_of(m: int, key: int, slot: int) -> int:
    """Where a list stands: the address of its first and last item."""
    return peek(m, LISTS) + 16 * (key * peek(m, SLOTS) + slot)


@compiled
def item_field(m: int, item: int, name: int) -> int:
    """A field of a waiting item."""
    return peek(peek(m, ITEMS), item * ITEM_WORDS + name)


@compiled
def append(m: int, cell: int, occurrence: int, start: int, end: int) -> None:
    """Let an occurrence wait at the end of a list."""
    item = peek(m, FREE_ITEM)
    if item == NONE:
        reserve(m, ITEMS, ITEM_WORDS)
        item = peek(m, ITEMS + USED) // ITEM_WORDS
        poke(m, ITEMS + USED, (item + 1) * ITEM_WORDS)
    else:
        poke(m, FREE_ITEM, item_field(m, item, ITEM_NEXT))
    items = peek(m, ITEMS)
    poke(items, item * ITEM_WORDS + ITEM_NEXT, NONE)
    poke(items, item * ITEM_WORDS + ITEM_OCCURRENCE, occurrence)
    poke(items, item * ITEM_WORDS + ITEM_START, start)
    poke(items, item * ITEM_WORDS + ITEM_END, end)
    last = peek(cell, 1)
    if last == NONE:
        poke(cell, 0, item)
    else:
        poke(items, last * ITEM_WORDS + ITEM_NEXT, item)
    poke(cell, 1, item)


@compiled
def unlink(m: int, cell: int, before: int, item: int) -> None:
    """Take an item out of its list; `before` is the one in front of it, or NONE."""
    items = peek(m, ITEMS)
    after = peek(items, item * ITEM_WORDS + ITEM_NEXT)
    if before == NONE:
        poke(cell, 0, after)
    else:
        poke(items, before * ITEM_WORDS + ITEM_NEXT, after)
    if after == NONE:
        poke(cell, 1, before)
    poke(items, item * ITEM_WORDS + ITEM_NEXT, peek(m, FREE_ITEM))
    poke(m, FREE_ITEM, item)


@compiled
def clear(m: int, cell: int) -> None:
    """Let nothing wait in a list."""
    while peek(cell, 0) != NONE:
        unlink(m, cell, NONE, peek(cell, 0))


@compiled
def drop_expired(m: int, cell: int, horizon: int) -> int:
    """Drop what began before `horizon`; gives the number of those that stay."""
    before, item, stay = NONE, peek(cell, 0), 0
    while item != NONE:
        after = item_field(m, item, ITEM_NEXT)
        if item_field(m, item, ITEM_START) < horizon:
            unlink(m, cell, before, item)
        else:
            before = item
            stay += 1
        item = after
    return stay


@compiled
def copy_list(m: int, source: int, target: int) -> None:
    """Let all that waits in one list wait in another too."""
    item = peek(source, 0)
    while item != NONE:
        append(
            m,
            target,
            item_field(m, item, ITEM_OCCURRENCE),
            item_field(m, item, ITEM_START),
            item_field(m, item, ITEM_END),
        )
        item = item_field(m, item, ITEM_NEXT)


@compiled
def expect(m: int, key: int, due: int) -> None:
    """Note that a timer of the partition is due then, or earlier."""
    if due < peek(peek(m, DUE), key):
        poke(peek(m, DUE), key, due)


@compiled
def next_due(m: int, node: int, key: int, now: int) -> int:
    """When a timer node acts next, after `now`."""
    duration = field(m, node, DURATION)
    item = peek(cell_of(m, key, field(m, node, SLOT)), 0)
    due = FOREVER
    if field(m, node, OPERATOR) != P:
        return due if item == NONE else item_field(m, item, ITEM_END) + duration
    while item != NONE:
        end = item_field(m, item, ITEM_END)
        due = min(due, end + ((now - end) // duration + 1) * duration)
        item = item_field(m, item, ITEM_NEXT)
    return due if due <= peek(m, LAST_TICK) else FOREVER


@compiled
def expect_next(m: int, key: int, now: int) -> None:
    """Find out anew when the partition's next timer is due."""
    due = FOREVER
    for timer in range(peek(m, TIMERS_COUNT)):
        due = min(due, next_due(m, peek(peek(m, TIMERS), timer), key, now))
    poke(peek(m, DUE), key, due)
