"""Blocks of partial matches in flat arrays: what the generated function of a pattern calls.

A partition has a block of `records` with its partial matches side by side, the oldest first. Blocks have room for 1, 2,
4, ... partial matches; those of one size that are free form a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from estream.event.compiled import compiled
from estream.event.identity import mix

Words = npt.NDArray[np.int64]
NONE = -1

SIZES = 48
HEADER_WORDS = 3 + SIZES
RECORD_SIZE, USED, MATCHES, FREE = range(4)
"""Words of a partial match, words of `records` that were ever used, matches found in this step, and for each size of
block the first free one."""

PARTITION_WORDS = 5
BASE, SIZE, LIVE, SEEN, LAST_ROW = range(PARTITION_WORDS)
"""Of a partition: where its block begins, the block has room for 2 ** SIZE, how many partial matches, rows so far, the
last row. Last values follow."""

RECORD_WORDS = 3
START, FIRST_ID, BEGUN = range(RECORD_WORDS)
"""Of a partial match: time and id of its first row, rows of the partition before it. States and aggregates follow."""

FOUND_WORDS = 4
FOUND_ROW, FOUND_START, FOUND_ID, FOUND_COUNT = range(FOUND_WORDS)
"""Of a match: its last row, time and id of its first row, how many rows. Aggregates follow."""


if TYPE_CHECKING:

    def get(array: npt.NDArray[Any], index: int) -> Any:
        """An element of an array, at an index that is not negative: nothing is asked, which makes it twice as fast."""

    def put(array: npt.NDArray[Any], index: int, value: Any) -> None:
        """Set an element of an array, at an index that is not negative."""

else:

    def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, arguments[0])
        return builder.gep(array.data, [arguments[1]])

    @intrinsic
    def get(typing_context: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return context.unpack_value(builder, array.dtype, _pointer(context, builder, signature, arguments))

        return array.dtype(array, types.int64), generate

    @intrinsic
    def put(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            context.pack_value(builder, array.dtype, arguments[2], _pointer(context, builder, signature, arguments))
            return context.get_dummy_value()

        return types.void(array, types.int64, array.dtype), generate


def new_header(record_size: int, used: int = 0) -> Words:
    """A header with no free blocks."""
    header = np.full(HEADER_WORDS, NONE, dtype=np.int64)
    header[:FREE] = record_size, used, 0
    return header


@compiled
def widen(header: Words, partitions: Words, records: Words, part: int) -> bool:
    """Change a full block for one of twice the size, or give the first one; False if `records` has no room for it."""
    record_size, size = header[RECORD_SIZE], partitions[part + SIZE]
    base = header[FREE + size + 1]
    if base != NONE:
        header[FREE + size + 1] = records[base]
    else:
        base = header[USED]
        if base + (record_size << (size + 1)) > len(records):
            return False
        header[USED] = base + (record_size << (size + 1))
    if size >= 0:
        old = partitions[part + BASE]
        for word in range(partitions[part + LIVE] * record_size):
            records[base + word] = records[old + word]
        records[old] = header[FREE + size]
        header[FREE + size] = old
    partitions[part + BASE] = base
    partitions[part + SIZE] = size + 1
    return True


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
def packed(partitions: Words, records: Words, partition_size: int, record_size: int, oldest: int, out: Words) -> int:
    """Move the partial matches that began at `oldest` or later into `out`, block by block; gives the words used."""
    used = 0
    for part in range(0, len(partitions), partition_size):
        at = partitions[part + BASE]
        live = partitions[part + LIVE]
        while live > 0 and records[at + START] < oldest:
            at += record_size
            live -= 1
        size = -1
        while live > 1 << max(size, 0) or size < 0 < live:
            size += 1
        for word in range(live * record_size):
            out[used + word] = records[at + word]
        partitions[part + BASE] = used
        partitions[part + LIVE] = live
        partitions[part + SIZE] = size
        used += record_size << size if size >= 0 else 0
    return used
