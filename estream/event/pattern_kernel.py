"""Lists of partial matches in flat arrays: what the generated function of a pattern calls.

A partition has a list of its partial matches, the oldest first. The lists hang together by slot numbers in `records`;
slots that are free form a list of their own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from estream.event.compiled import compiled
from estream.event.identity import mix

Words = npt.NDArray[np.int64]
NONE = -1

HEADER_WORDS = 3
FREE, USED, MATCHES = range(HEADER_WORDS)
"""The first free slot, slots that were ever used, matches found in this step."""

PARTITION_WORDS = 5
HEAD, TAIL, SEEN, LIVE, LAST_ROW = range(PARTITION_WORDS)
"""Of a partition: its first and last partial match, rows so far, partial matches, its last row. Last values follow."""

RECORD_WORDS = 4
NEXT, START, FIRST_ID, BEGUN = range(RECORD_WORDS)
"""Of a partial match: the next one, time and id of its first row, rows of the partition before it. Its states and
aggregates follow."""

FOUND_WORDS = 4
FOUND_ROW, FOUND_START, FOUND_ID, FOUND_COUNT = range(FOUND_WORDS)
"""Of a match: its last row, time and id of its first row, how many rows. Aggregates follow."""


@compiled
def take(header: Words, records: Words, size: int) -> int:
    """A free slot for a record of `size` words; the caller has seen to it that there is one."""
    slot = header[FREE]
    if slot == NONE:
        slot = header[USED]
        header[USED] = slot + 1
    else:
        header[FREE] = records[slot * size + NEXT]
    return int(slot)


@compiled
def give_back(header: Words, records: Words, size: int, slot: int) -> None:
    """Make a slot free that is in no list."""
    records[slot * size + NEXT] = header[FREE]
    header[FREE] = slot


@compiled
def append(partitions: Words, records: Words, size: int, part: int, slot: int) -> None:
    """Put a new partial match behind the others."""
    records[slot * size + NEXT] = NONE
    if partitions[part + HEAD] == NONE:
        partitions[part + HEAD] = slot
    else:
        records[partitions[part + TAIL] * size + NEXT] = slot
    partitions[part + TAIL] = slot
    partitions[part + LIVE] += 1


@compiled
def drop(header: Words, partitions: Words, records: Words, size: int, part: int, slot: int, before: int) -> None:
    """Take a partial match out of its list; `before` is the one in front of it, or NONE."""
    following = records[slot * size + NEXT]
    if before == NONE:
        partitions[part + HEAD] = following
    else:
        records[before * size + NEXT] = following
    if following == NONE:
        partitions[part + TAIL] = before
    partitions[part + LIVE] -= 1
    give_back(header, records, size, slot)


@compiled
def drop_all(header: Words, partitions: Words, records: Words, size: int, part: int) -> None:
    """Forget every partial match of a partition."""
    if partitions[part + HEAD] != NONE:
        records[partitions[part + TAIL] * size + NEXT] = header[FREE]
        header[FREE] = partitions[part + HEAD]
        partitions[part + HEAD] = NONE
        partitions[part + TAIL] = NONE
        partitions[part + LIVE] = 0


@compiled
def chains(previous: Words, last: Words, counts: Words, out: Words) -> None:
    """The rows of matches, those of each one after the other in `out`; `previous` leads from row to row."""
    end = 0
    for number in range(len(last)):
        end += counts[number]
        row = last[number]
        for place in range(end - 1, end - counts[number] - 1, -1):
            out[place] = row
            row = previous[row]


@compiled
def match_ids(name: int, first: Words, start: Words, last: Words, end: Words) -> Words:
    """The ids of matches: a match is told by its event's name, its first row and its last row."""
    out = np.empty(len(end), dtype=np.int64)
    for number in range(len(end)):
        begun = mix(mix(mix(name, end[number]), first[number]), start[number])
        out[number] = mix(mix(begun, last[number]), end[number])
    return out


@compiled
def drop_expired(
    header: Words, partitions: Words, records: Words, partition_size: int, record_size: int, oldest: int
) -> None:
    """Forget the partial matches that began before `oldest`."""
    for part in range(0, len(partitions), partition_size):
        slot = partitions[part + HEAD]
        while slot != NONE and records[slot * record_size + START] < oldest:
            drop(header, partitions, records, record_size, part, slot, NONE)
            slot = partitions[part + HEAD]


@compiled
def packed(partitions: Words, records: Words, partition_size: int, record_size: int, out: Words) -> int:
    """Move all partial matches into `out`, list by list, and let the partitions point there; gives how many."""
    used = 0
    for part in range(0, len(partitions), partition_size):
        slot = partitions[part + HEAD]
        if slot != NONE:
            partitions[part + HEAD] = used
        while slot != NONE:
            following = records[slot * record_size + NEXT]
            for word in range(record_size):
                out[used * record_size + word] = records[slot * record_size + word]
            out[used * record_size + NEXT] = NONE if following == NONE else used + 1
            partitions[part + TAIL] = used
            used += 1
            slot = following
    return used
