"""What an occurrence does to the initiators that wait: one table for all operators, roles and contexts.

`POLICY[operator, role, context]` says which of the eligible initiators the occurrence meets, what becomes of them, and
what is signalled. `meet` is the only code that reads it (docs/semantics.md, sections 3 and 4).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from estream.event.compiled import compiled
from estream.event.kernel_lists import item_field, unlink
from estream.event.kernel_occurrence import append_rows, end_of, field, signal_parts, start_of, touches
from estream.event.memory import peek, poke, push
from estream.event.words import (
    A_STAR,
    ABSENT,
    AND,
    CONTEXT,
    CONTEXTS,
    CUMULATIVE,
    FOREVER,
    ITEM_END,
    ITEM_NEXT,
    ITEM_OCCURRENCE,
    ITEM_START,
    LAST_TICK,
    NONE,
    NOT,
    OPERATOR,
    OPERATORS,
    P_STAR,
    PARTS,
    PICKED,
    POINT,
    SEQUENCE,
    SPANS,
    USED,
    WITHIN,
    A,
    P,
)

FIRST, DROP, MERGE, SILENT, ANY_ORDER, CLOSED, COLLECT, TICKS = (1 << bit for bit in range(8))
"""FIRST: the oldest only. DROP: those met no longer wait. MERGE: one occurrence with all of them. SILENT: nothing is
signalled, and W is not asked. ANY_ORDER: «before» is not asked. CLOSED: «before» lets the same time through.
COLLECT: with the middle events recorded. TICKS: with the ticks recorded."""

MIDDLE, TERMINATOR = 0, 1


def _policies() -> npt.NDArray[np.int64]:
    table = np.zeros((len(OPERATORS), 2, len(CONTEXTS)), dtype=np.int64)
    detect_and_drop = np.array([0, 0, FIRST | DROP, DROP, DROP | MERGE])
    close = np.array([DROP, DROP, FIRST | DROP, DROP, DROP])
    for operator in (SEQUENCE, NOT):
        table[operator, TERMINATOR] = detect_and_drop
    table[AND, TERMINATOR] = detect_and_drop | ANY_ORDER
    table[A, MIDDLE] = [0, 0, FIRST, 0, MERGE]
    table[NOT, MIDDLE] = DROP | SILENT | CLOSED
    for operator, role in ((A, TERMINATOR), (P, TERMINATOR), (ABSENT, MIDDLE)):
        table[operator, role] = close | SILENT
    table[A_STAR, TERMINATOR] = close | COLLECT
    table[P_STAR, TERMINATOR] = close | TICKS
    for operator in (A_STAR, P_STAR):
        table[operator, TERMINATOR, CUMULATIVE] |= MERGE
    return table


POLICY = _policies()


@compiled
def ceiling(m: int, node: int, other: int, now: int, policy: int) -> int:
    """`i before other` is `i.end < ceiling`."""
    if policy & ANY_ORDER:
        return FOREVER
    bar = now if field(m, node, POINT) else start_of(m, other)
    return bar + 1 if policy & CLOSED else bar


@compiled
def pick(m: int, node: int, cell: int, operand: int, other: int, now: int, policy: int) -> int:
    """Put the eligible initiators into PICKED, in the order of the list; drop them if the policy says so."""
    horizon = now - field(m, node, WITHIN)
    bar = ceiling(m, node, other, now, policy)
    if not policy & SILENT and start_of(m, other) < horizon:
        return 0
    poke(m, PICKED + USED, 0)
    before, item, picked = NONE, peek(cell, 0), 0
    while item != NONE and item_field(m, item, ITEM_END) < bar:
        after = item_field(m, item, ITEM_NEXT)
        occurrence = item_field(m, item, ITEM_OCCURRENCE)
        if item_field(m, item, ITEM_START) < horizon:
            unlink(m, cell, before, item)
        elif touches(m, node, operand, occurrence, other):
            push(m, PICKED, occurrence)
            picked += 1
            if policy & DROP:
                unlink(m, cell, before, item)
            else:
                before = item
            if policy & FIRST:
                break
        else:
            before = item
        item = after
    return picked


@compiled
def records(m: int, node: int, first: int, count: int, middle: int, end: int) -> bool:
    """Whether one of the windows PICKED[first:first + count] has recorded the middle event."""
    bar = end if field(m, node, POINT) else start_of(m, middle)
    for position in range(first, first + count):
        window = peek(peek(m, PICKED), position)
        if end_of(m, window) < bar and touches(m, node, 1, window, middle):
            return True
    return False


@compiled
def collect(m: int, node: int, first: int, count: int, cell: int, least: int) -> int:
    """Append the middle events that the picked windows recorded to PARTS; gives the least start so far."""
    item = peek(cell, 0)
    while item != NONE:
        middle = item_field(m, item, ITEM_OCCURRENCE)
        if records(m, node, first, count, middle, item_field(m, item, ITEM_END)):
            append_rows(m, PARTS, middle)
            least = min(least, item_field(m, item, ITEM_START))
        item = item_field(m, item, ITEM_NEXT)
    return least


@compiled
def note_windows(m: int, first: int, count: int, now: int) -> int:
    """Keep what the `ticks` of a P* detection are made of: how far they go, and where its windows began."""
    mark = peek(m, SPANS + USED)
    push(m, SPANS, min(now, peek(m, LAST_TICK)))
    push(m, SPANS, count)
    for position in range(first, first + count):
        push(m, SPANS, end_of(m, peek(peek(m, PICKED), position)))
    return mark


@compiled
def signal_picked(m: int, node: int, first: int, count: int, other: int, now: int, policy: int, cell: int) -> None:
    """Signal one occurrence: the picked initiators, what they recorded, and the occurrence that met them."""
    parts = peek(m, PARTS + USED)
    least = start_of(m, other)
    for position in range(first, first + count):
        initiator = peek(peek(m, PICKED), position)
        append_rows(m, PARTS, initiator)
        least = min(least, start_of(m, initiator))
    if policy & COLLECT:
        least = collect(m, node, first, count, cell + 16, least)
    append_rows(m, PARTS, other)
    mark = note_windows(m, first, count, now) if policy & TICKS else NONE
    signal_parts(m, node, parts, least, now, mark)


@compiled
def meet(m: int, node: int, role: int, cell: int, operand: int, other: int, now: int) -> int:
    """Let an occurrence act on the initiators that wait in a list; gives how many it met."""
    policy = POLICY[field(m, node, OPERATOR), role, field(m, node, CONTEXT)]
    picked = pick(m, node, cell, operand, other, now, policy)
    if policy & SILENT or picked == 0:
        return picked
    if policy & MERGE:
        signal_picked(m, node, 0, picked, other, now, policy, cell)
    else:
        for position in range(picked):
            signal_picked(m, node, position, 1, other, now, policy, cell)
    return picked
