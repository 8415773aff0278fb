"""One node in one epoch: its operands' occurrences act on what waits, in the order of roles (docs/semantics.md)."""

from __future__ import annotations

from estream.event.compiled import compiled
from estream.event.kernel_lists import (
    append,
    cell_of,
    clear,
    drop_expired,
    expect,
    item_field,
    unlink,
)
from estream.event.kernel_occurrence import (
    admits,
    append_rows,
    field,
    signal,
    signal_parts,
    start_of,
    touches,
)
from estream.event.kernel_roles import MIDDLE, TERMINATOR, meet
from estream.event.memory import peek
from estream.event.words import (
    A_STAR,
    ABSENT,
    AND,
    BUFFERS,
    CHRONICLE,
    CONTEXT,
    COUNT,
    CUMULATIVE,
    DURATION,
    FIRST_OPERAND,
    FOREVER,
    ITEM_END,
    ITEM_NEXT,
    ITEM_OCCURRENCE,
    ITEM_START,
    LAST_TICK,
    NONE,
    NOT,
    OPERAND_COUNT,
    OPERANDS,
    OPERATOR,
    OR,
    OUT,
    PARTS,
    PLUS,
    RECENT,
    SEQUENCE,
    SLOT,
    TIMES,
    USED,
    WITHIN,
    A,
    P,
)


@compiled
def operand_of(m: int, node: int, position: int) -> int:
    """The node that stands in a role of this one."""
    return peek(peek(m, OPERANDS), field(m, node, FIRST_OPERAND) + position)


@compiled
def count_of(m: int, node: int) -> int:
    """How many occurrences the node has in this epoch."""
    return peek(peek(m, BUFFERS), 2 * node + 1)


@compiled
def occurrence_of(m: int, node: int, position: int) -> int:
    """An occurrence the node has in this epoch, in canonical order."""
    return peek(peek(m, OUT), peek(peek(m, BUFFERS), 2 * node) + position)


@compiled
def act(m: int, node: int, role: int, position: int, cell: int, now: int) -> None:
    """Let the occurrences of one operand meet the initiators, one after the other."""
    operand = operand_of(m, node, position)
    for number in range(count_of(m, operand)):
        occurrence = occurrence_of(m, operand, number)
        if admits(m, node, position, occurrence):
            meet(m, node, role, cell, position, occurrence, now)


@compiled
def negated(m: int, node: int, initiator: int) -> bool:
    """`not`: whether an N of this epoch keeps the initiator from being installed."""
    operand = operand_of(m, node, 1)
    for number in range(count_of(m, operand)):
        occurrence = occurrence_of(m, operand, number)
        if admits(m, node, 1, occurrence) and touches(m, node, 1, initiator, occurrence):
            return True
    return False


@compiled
def install(m: int, node: int, key: int, cell: int, now: int) -> None:
    """Let the initiators of this epoch wait."""
    operand = operand_of(m, node, 0)
    operator = field(m, node, OPERATOR)
    for number in range(count_of(m, operand)):
        occurrence = occurrence_of(m, operand, number)
        if not admits(m, node, 0, occurrence) or (operator == NOT and negated(m, node, occurrence)):
            continue
        if field(m, node, CONTEXT) == RECENT:
            clear(m, cell)
        start = start_of(m, occurrence)
        if now - start > field(m, node, WITHIN):
            continue
        append(m, cell, occurrence, start, now)
        if operator in (P, PLUS, ABSENT):
            expect(m, key, now + field(m, node, DURATION))


@compiled
def record(m: int, node: int, cell: int, now: int) -> None:
    """`A*`: keep the middle events of this epoch while a window is open that may ask for them."""
    ended = cell + 16
    if peek(cell, 0) == NONE:
        clear(m, ended)
        return
    opened = item_field(m, peek(cell, 0), ITEM_END)
    while peek(ended, 0) != NONE and item_field(m, peek(ended, 0), ITEM_END) <= opened:
        unlink(m, ended, NONE, peek(ended, 0))
    operand = operand_of(m, node, 1)
    for number in range(count_of(m, operand)):
        occurrence = occurrence_of(m, operand, number)
        if admits(m, node, 1, occurrence):
            append(m, ended, occurrence, start_of(m, occurrence), now)


@compiled
def tick(m: int, node: int, cell: int, now: int) -> None:
    """`P`: every open window that is due ticks."""
    if now > peek(m, LAST_TICK):
        return
    duration = field(m, node, DURATION)
    item = peek(cell, 0)
    while item != NONE:
        passed = now - item_field(m, item, ITEM_END)
        if passed > 0 and passed % duration == 0:
            first = peek(m, PARTS + USED)
            append_rows(m, PARTS, item_field(m, item, ITEM_OCCURRENCE))
            signal_parts(m, node, first, now, now, passed // duration)
        item = item_field(m, item, ITEM_NEXT)


@compiled
def expire(m: int, node: int, cell: int, now: int) -> None:
    """`+` and `absent`: what is due is signalled and waits no longer; `+` in `cumulative` takes all that wait along."""
    duration = field(m, node, DURATION)
    plus = field(m, node, OPERATOR) == PLUS
    merge = plus and field(m, node, CONTEXT) == CUMULATIVE
    while peek(cell, 0) != NONE and item_field(m, peek(cell, 0), ITEM_END) + duration <= now:
        first = peek(m, PARTS + USED)
        start = now if plus else item_field(m, peek(cell, 0), ITEM_START)
        append_rows(m, PARTS, item_field(m, peek(cell, 0), ITEM_OCCURRENCE))
        unlink(m, cell, NONE, peek(cell, 0))
        while merge and peek(cell, 0) != NONE:
            append_rows(m, PARTS, item_field(m, peek(cell, 0), ITEM_OCCURRENCE))
            unlink(m, cell, NONE, peek(cell, 0))
        signal_parts(m, node, first, start, now, NONE)


@compiled
def either(m: int, node: int, now: int) -> None:
    """`or`: every occurrence of every side."""
    for position in range(field(m, node, OPERAND_COUNT)):
        operand = operand_of(m, node, position)
        for number in range(count_of(m, operand)):
            occurrence = occurrence_of(m, operand, number)
            if admits(m, node, position, occurrence):
                signal(m, node, occurrence, start_of(m, occurrence), now)


@compiled
def join(m: int, node: int, side: int, cell: int, now: int) -> None:
    """`and`: the occurrences of one side meet the list of the other, or wait in their own."""
    operand = operand_of(m, node, side)
    own, others = cell + 16 * side, cell + 16 * (1 - side)
    context = field(m, node, CONTEXT)
    for number in range(count_of(m, operand)):
        occurrence = occurrence_of(m, operand, number)
        if not admits(m, node, side, occurrence):
            continue
        if context == RECENT:
            clear(m, own)
        met = meet(m, node, TERMINATOR, others, 1, occurrence, now)
        start = start_of(m, occurrence)
        if (met == 0 or context <= RECENT) and now - start <= field(m, node, WITHIN):
            append(m, own, occurrence, start, now)


@compiled
def count_up(m: int, node: int, cell: int, now: int) -> None:
    """`times`: the last n occurrences make one."""
    operand = operand_of(m, node, 0)
    context = field(m, node, CONTEXT)
    waiting = drop_expired(m, cell, now - field(m, node, WITHIN))
    for number in range(count_of(m, operand)):
        occurrence = occurrence_of(m, operand, number)
        start = start_of(m, occurrence)
        if not admits(m, node, 0, occurrence) or now - start > field(m, node, WITHIN):
            continue
        append(m, cell, occurrence, start, now)
        waiting += 1
        if waiting < field(m, node, COUNT):
            continue
        signal_list(m, node, cell, now)
        if context in (CHRONICLE, CUMULATIVE):
            clear(m, cell)
            waiting = 0
        else:
            unlink(m, cell, NONE, peek(cell, 0))
            waiting -= 1


@compiled
def signal_list(m: int, node: int, cell: int, now: int) -> None:
    """Signal one occurrence made of all that waits in a list."""
    first = peek(m, PARTS + USED)
    least = FOREVER
    item = peek(cell, 0)
    while item != NONE:
        append_rows(m, PARTS, item_field(m, item, ITEM_OCCURRENCE))
        least = min(least, item_field(m, item, ITEM_START))
        item = item_field(m, item, ITEM_NEXT)
    signal_parts(m, node, first, least, now, NONE)


@compiled
def visit(m: int, node: int, key: int, now: int) -> None:
    """One node in one epoch: negation and middle events, then terminators and what is due, then initiators."""
    operator = field(m, node, OPERATOR)
    cell = cell_of(m, key, field(m, node, SLOT))
    if operator == OR:
        either(m, node, now)
    elif operator == AND:
        join(m, node, 0, cell, now)
        join(m, node, 1, cell, now)
    elif operator == TIMES:
        count_up(m, node, cell, now)
    elif operator == SEQUENCE:
        act(m, node, TERMINATOR, 1, cell, now)
        install(m, node, key, cell, now)
    else:
        if field(m, node, WITHIN) < FOREVER:
            drop_expired(m, cell, now - field(m, node, WITHIN))
        if operator in (NOT, A, ABSENT):
            act(m, node, MIDDLE, 1, cell, now)
        elif operator == A_STAR:
            record(m, node, cell, now)
        elif operator == P:
            tick(m, node, cell, now)
        if operator in (PLUS, ABSENT):
            expire(m, node, cell, now)
        else:
            act(m, node, TERMINATOR, field(m, node, OPERAND_COUNT) - 1, cell, now)
        install(m, node, key, cell, now)
