"""The kernel: epochs of partitions in order of time, nodes bottom up, roles in the order of the contract.

Partitions are independent of each other, so a partition's timers wait until its next row, or the end of the step, and
then act in their own epochs, in order (docs/semantics.md, sections 1 to 4).
"""

from __future__ import annotations

from estream.event.compiled import compiled
from estream.event.kernel_lists import (
    cell_of,
    copy_list,
    expect_next,
)
from estream.event.kernel_nodes import count_of, visit
from estream.event.kernel_occurrence import (
    field,
    sort,
    unite,
)
from estream.event.kernel_rows import sequence_row
from estream.event.memory import peek, poke, push, reserve
from estream.event.words import (
    ACTIVE,
    BUCKET_BITS,
    BUFFERS,
    DIRECT,
    DISTINCT,
    DUE,
    FIRST_PARENT,
    FOREVER,
    FOUND,
    FOUND_WORDS,
    KEYS,
    NONE,
    OUT,
    PARENT_COUNT,
    PARENTS,
    PLAIN,
    RECORDED,
    ROW_TIME,
    SLOTS,
    TEMPORAL,
    TEMPORAL_COUNT,
    TEMPORAL_NEXT,
    TIMERS,
    TIMERS_COUNT,
    TOUCHED,
    USED,
)

UNBORN = -2
"""What the next temporal occurrence of a partition is before its first row."""


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
def note(m: int, node: int, first: int, count: int) -> None:
    """Let occurrences of this epoch leave the kernel."""
    reserve(m, FOUND, FOUND_WORDS * count)
    found = peek(m, FOUND) + 8 * peek(m, FOUND + USED)
    for position in range(count):
        poke(found, FOUND_WORDS * position, node)
        poke(found, FOUND_WORDS * position + 1, peek(peek(m, OUT), first + position))
    poke(m, FOUND + USED, peek(m, FOUND + USED) + FOUND_WORDS * count)


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
        note(m, node, first, count)
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
def pass_on(m: int, leaf: int, row: int, key: int, now: int) -> None:
    """An epoch of one row whose leaf is DIRECT: what `feed` and `epoch` do, without the detours."""
    poke(peek(m, TOUCHED), key >> BUCKET_BITS, 1)
    parents = field(m, leaf, FIRST_PARENT)
    for parent in range(parents, parents + field(m, leaf, PARENT_COUNT)):
        node = peek(peek(m, PARENTS), parent)
        if field(m, node, PLAIN):
            sequence_row(m, node, leaf, key, row, now)
        else:
            visit_alone(m, node, leaf, key, row, now)


@compiled
def visit_alone(m: int, node: int, leaf: int, key: int, row: int, now: int) -> None:
    """Visit a node that nothing stands above, with one row in one of its leaves."""
    buffers = peek(m, BUFFERS)
    poke(buffers, 2 * leaf, 0)
    poke(buffers, 2 * leaf + 1, 1)
    poke(peek(m, OUT), 0, row)
    poke(m, OUT + USED, 1)
    visit(m, node, key, now)
    count = peek(m, OUT + USED) - 1
    if count > 0:
        if count > 1:
            sort(m, OUT, 1, count, True)
        note(m, node, 1, count)
    poke(m, OUT + USED, 0)
    poke(buffers, 2 * leaf + 1, 0)


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
def is_due(m: int, key: int, now: int) -> bool:
    """Whether something else happens in the partition at this time: a timer, or a temporal event that was fed."""
    return peek(peek(m, DUE), key) <= now or peek(m, ACTIVE + USED) > 0


@compiled
def bear(m: int, key: int, limit: int) -> None:
    """A new partition begins as partition 0, which sees temporal events only: they belong to every partition."""
    catch_up(m, 0, limit)
    for slot in range(peek(m, SLOTS)):
        copy_list(m, cell_of(m, 0, slot), cell_of(m, key, slot))
    poke(peek(m, DUE), key, peek(peek(m, DUE), 0))
    poke(peek(m, TEMPORAL_NEXT), key, peek(peek(m, TEMPORAL_NEXT), 0))


@compiled
def goes_on(times: int, keys: int, turns: int, position: int, count: int) -> bool:
    """Whether the occurrence at `position` belongs to the epoch and partition of the one in front of it."""
    if position == count or peek(times, position) != peek(times, position - 1):
        return False
    return peek(keys, position) == peek(keys, position - 1) and (
        turns == 0 or peek(turns, position) == peek(turns, position - 1)
    )


@compiled
def run(m: int, times: int, keys: int, leaves: int, occurrences: int, turns: int, count: int, limit: int) -> None:
    """Step a group over its input, sorted by (time, turn, key, leaf, canonical order), then up to `limit`.

    With `turns` (`order: arrival`) a time has several epochs: first that of its timers, then one for each row.
    """
    temporal = peek(m, TEMPORAL_NEXT) != 0
    eager = temporal or peek(m, TIMERS_COUNT) > 0
    position = 0
    while position < count:
        now, key = peek(times, position), peek(keys, position)
        apart = 1 if turns != 0 and peek(turns, position) != NONE else 0
        if eager:
            if temporal and peek(peek(m, TEMPORAL_NEXT), key) == UNBORN:
                bear(m, key, now + apart)
            catch_up(m, key, now + apart)
            feed_temporal(m, key, now)
        leaf, occurrence = peek(leaves, position), peek(occurrences, position)
        position += 1
        alone = not goes_on(times, keys, turns, position, count)
        if alone and field(m, leaf, DIRECT) and not (eager and is_due(m, key, now)):
            pass_on(m, leaf, occurrence, key, now)
            continue
        feed(m, leaf, occurrence)
        while goes_on(times, keys, turns, position, count):
            feed(m, peek(leaves, position), peek(occurrences, position))
            position += 1
        epoch(m, key, now)
    if eager:
        for key in range(peek(m, KEYS)):
            if not temporal or peek(peek(m, TEMPORAL_NEXT), key) != UNBORN:
                catch_up(m, key, limit)
