"""Lists of what waits, out of the kernel's memory and back into it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from estream.event.compiled import compiled
from estream.event.kernel_lists import expect_next, item_field
from estream.event.kernel_occurrence import end_of, start_of
from estream.event.memory import peek, poke
from estream.event.words import (
    FREE_ITEM,
    ITEM_END,
    ITEM_NEXT,
    ITEM_OCCURRENCE,
    ITEM_START,
    ITEM_WORDS,
    ITEMS,
    NONE,
    USED,
)

Words = npt.NDArray[np.int64]


@compiled
def items_out(m: int, lists: Words, numbers: Words, slot: int, counts: Words, out: Words) -> int:
    """The occurrences that wait at a node, list after list, and how many in each; gives how many in all."""
    at = 0
    for place in range(len(numbers)):
        for side in range(counts.shape[1]):
            first, item = at, lists[numbers[place], slot + side, 0]
            while item != NONE:
                out[at] = item_field(m, item, ITEM_OCCURRENCE)
                at += 1
                item = item_field(m, item, ITEM_NEXT)
            counts[place, side] = at - first
    return at


@compiled
def parts_of(parts: Words, first: Words, count: Words, out: Words) -> None:
    """The constituents of composites, one after the other."""
    at = 0
    for number in range(len(first)):
        for position in range(first[number], first[number] + count[number]):
            out[at] = parts[position]
            at += 1


@compiled
def items_in(m: int, lists: Words, numbers: Words, slot: int, counts: Words, occurrences: Words) -> None:
    """Let occurrences wait, list after list; there must be room for the items, and no free ones."""
    items = peek(m, ITEMS)
    item, at = peek(m, ITEMS + USED) // ITEM_WORDS, 0
    for place in range(len(numbers)):
        for side in range(counts.shape[1]):
            waiting = counts[place, side]
            for position in range(waiting):
                occurrence = occurrences[at]
                poke(items, item * ITEM_WORDS + ITEM_NEXT, item + 1 if position + 1 < waiting else NONE)
                poke(items, item * ITEM_WORDS + ITEM_OCCURRENCE, occurrence)
                poke(items, item * ITEM_WORDS + ITEM_START, start_of(m, occurrence))
                poke(items, item * ITEM_WORDS + ITEM_END, end_of(m, occurrence))
                item += 1
                at += 1
            if waiting:
                lists[numbers[place], slot + side, 0] = item - waiting
                lists[numbers[place], slot + side, 1] = item - 1
    poke(m, ITEMS + USED, item * ITEM_WORDS)
    poke(m, FREE_ITEM, NONE)


@compiled
def find_due(m: int, count: int, now: int) -> None:
    """Find out when each partition's next timer is due, after `now`."""
    for key in range(count):
        expect_next(m, key, now)
