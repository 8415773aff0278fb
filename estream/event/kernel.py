"""The kernel: epochs of partitions in order of time, nodes bottom up, roles in the order of the contract.

Partitions are independent of each other, so a partition's timers wait until its next row, or the end of the step, and
then act in their own epochs, in order (docs/semantics.md, sections 1 to 4).
"""

from __future__ import annotations

from estream.event.compiled import compiled
from estream.event.kernel_lists import (
    append,
    cell_of,
    clear,
    copy_list,
    drop_expired,
    expect,
    expect_next,
    item_field,
    unlink,
)
from estream.event.kernel_occurrence import (
    admits,
    append_rows,
    field,
    signal,
    signal_parts,
    sort,
    start_of,
    touches,
    unite,
)
from estream.event.kernel_roles import MIDDLE, TERMINATOR, meet
from estream.event.memory import peek, poke, push
from estream.event.words import (
    A_STAR,
    ABSENT,
    ACTIVE,
    AND,
    BUCKET_BITS,
    BUFFERS,
    CHRONICLE,
    CONTEXT,
    COUNT,
    CUMULATIVE,
    DISTINCT,
    DUE,
    DURATION,
    FIRST_OPERAND,
    FIRST_PARENT,
    FOREVER,
    FOUND,
    ITEM_END,
    ITEM_NEXT,
    ITEM_OCCURRENCE,
    ITEM_START,
    KEYS,
    LAST_TICK,
    NONE,
    NOT,
    OPERAND_COUNT,
    OPERANDS,
    OPERATOR,
    OR,
    OUT,
    PARENT_COUNT,
    PARENTS,
    PARTS,
    PLUS,
    RECENT,
    RECORDED,
    ROW_TIME,
    SEQUENCE,
    SLOT,
    SLOTS,
    TEMPORAL,
    TEMPORAL_COUNT,
    TEMPORAL_NEXT,
    TIMERS,
    TIMERS_COUNT,
    TIMES,
    TOUCHED,
    USED,
    WITHIN,
    A,
    P,
)

UNBORN = -2
"""What the next temporal occurrence of a partition is before its first row."""


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


@compiled
def activate(m: int, node: int) -> None:
    """Put a node among those to visit in this epoch, ascending, once."""
    used = peek(m, ACTIVE + USED)
    place = used
    while place > 0 and peek(peek(m, ACTIVE), place - 1) >= node:
        place -= 1
        if peek(peek(m, ACTIVE), place) == node:
            return
    push(m, ACTIVE, node)
    active = peek(m, ACTIVE)
    for later in range(used, place, -1):
        poke(active, later, peek(active, later - 1))
    poke(active, place, node)


@compiled
def publish(m: int, node: int) -> None:
    """Hand the node's occurrences of this epoch on: to its parents, and out of the kernel where someone listens."""
    first = peek(peek(m, BUFFERS), 2 * node)
    count = peek(m, OUT + USED) - first
    if count > 1:
        if not field(m, node, DISTINCT):
            count = unite(m, OUT, first, count)
            poke(m, OUT + USED, first + count)
        sort(m, OUT, first, count, True)
    poke(peek(m, BUFFERS), 2 * node + 1, count)
    if count == 0:
        return
    if field(m, node, RECORDED):
        for position in range(first, first + count):
            push(m, FOUND, node)
            push(m, FOUND, peek(peek(m, OUT), position))
    parents = field(m, node, FIRST_PARENT)
    for parent in range(parents, parents + field(m, node, PARENT_COUNT)):
        activate(m, peek(peek(m, PARENTS), parent))


@compiled
def epoch(m: int, key: int, now: int) -> None:
    """All that happens in one partition at one time; what came in from outside is in the buffers already."""
    poke(peek(m, TOUCHED), key >> BUCKET_BITS, 1)
    due = peek(peek(m, DUE), key) <= now
    if due:
        for timer in range(peek(m, TIMERS_COUNT)):
            activate(m, peek(peek(m, TIMERS), timer))
    position = 0
    while position < peek(m, ACTIVE + USED):
        node = peek(peek(m, ACTIVE), position)
        if count_of(m, node) == 0:
            poke(peek(m, BUFFERS), 2 * node, peek(m, OUT + USED))
            visit(m, node, key, now)
            publish(m, node)
        position += 1
    for position in range(peek(m, ACTIVE + USED)):
        poke(peek(m, BUFFERS), 2 * peek(peek(m, ACTIVE), position) + 1, 0)
    poke(m, ACTIVE + USED, 0)
    poke(m, OUT + USED, 0)
    if due:
        expect_next(m, key, now)


@compiled
def feed(m: int, leaf: int, occurrence: int) -> None:
    """Put an occurrence from outside into the buffer of its leaf; those of one leaf come one after the other."""
    buffers = peek(m, BUFFERS)
    count = peek(buffers, 2 * leaf + 1)
    if count == 0:
        poke(buffers, 2 * leaf, peek(m, OUT + USED))
        activate(m, leaf)
        parents = field(m, leaf, FIRST_PARENT)
        for parent in range(parents, parents + field(m, leaf, PARENT_COUNT)):
            activate(m, peek(peek(m, PARENTS), parent))
    push(m, OUT, occurrence)
    poke(buffers, 2 * leaf + 1, count + 1)
    if field(m, leaf, RECORDED):
        push(m, FOUND, leaf)
        push(m, FOUND, occurrence)


@compiled
def temporal_time(m: int, key: int) -> int:
    """When the partition's next temporal occurrence is."""
    if peek(m, TEMPORAL_COUNT) == 0:
        return FOREVER
    position = peek(peek(m, TEMPORAL_NEXT), key)
    if position >= peek(m, TEMPORAL_COUNT):
        return FOREVER
    return peek(peek(m, ROW_TIME), peek(peek(m, TEMPORAL), 2 * position + 1))


@compiled
def feed_temporal(m: int, key: int, now: int) -> None:
    """Feed the temporal occurrences of this time; they stand by leaf within a time."""
    while temporal_time(m, key) == now:
        position = peek(peek(m, TEMPORAL_NEXT), key)
        feed(m, peek(peek(m, TEMPORAL), 2 * position), peek(peek(m, TEMPORAL), 2 * position + 1))
        poke(peek(m, TEMPORAL_NEXT), key, position + 1)


@compiled
def catch_up(m: int, key: int, limit: int) -> None:
    """Run the partition's epochs before `limit` that no row begins: timers and temporal events."""
    while True:
        now = min(peek(peek(m, DUE), key), temporal_time(m, key))
        if now >= limit:
            return
        feed_temporal(m, key, now)
        epoch(m, key, now)


@compiled
def bear(m: int, key: int, limit: int) -> None:
    """A new partition begins as partition 0, which sees temporal events only: they belong to every partition."""
    catch_up(m, 0, limit)
    for slot in range(peek(m, SLOTS)):
        copy_list(m, cell_of(m, 0, slot), cell_of(m, key, slot))
    poke(peek(m, DUE), key, peek(peek(m, DUE), 0))
    poke(peek(m, TEMPORAL_NEXT), key, peek(peek(m, TEMPORAL_NEXT), 0))


@compiled
def run(m: int, times: int, keys: int, leaves: int, occurrences: int, count: int, limit: int, apart: int) -> None:
    """Step a group over its input, sorted by (time, key, leaf, canonical order), then up to `limit`.

    With `apart` every occurrence is an epoch of its own, after the timers due up to its time (`order: arrival`).
    """
    temporal = peek(m, TEMPORAL_NEXT) != 0
    eager = temporal or peek(m, TIMERS_COUNT) > 0
    position = 0
    while position < count:
        now, key = peek(times, position), peek(keys, position)
        if eager:
            if temporal and peek(peek(m, TEMPORAL_NEXT), key) == UNBORN:
                bear(m, key, now + apart)
            catch_up(m, key, now + apart)
            feed_temporal(m, key, now)
        feed(m, peek(leaves, position), peek(occurrences, position))
        position += 1
        while not apart and position < count and peek(times, position) == now and peek(keys, position) == key:
            feed(m, peek(leaves, position), peek(occurrences, position))
            position += 1
        epoch(m, key, now)
    if eager:
        for key in range(peek(m, KEYS)):
            if not temporal or peek(peek(m, TEMPORAL_NEXT), key) != UNBORN:
                catch_up(m, key, limit)
