"""Shards: parts of the state, by a hash of the partition key; n shards are n partitions of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.identity import row_ids

_SEED = 42
_WORD = 0xFFFFFFFF


def shards_of(rows: pa.Table, columns: Sequence[str], count: int) -> npt.NDArray[np.int64]:
    """The shard of every row by these columns; without columns they are all in the first."""
    if not columns or count == 1:
        return np.zeros(rows.num_rows, dtype=np.int64)
    return spread(row_ids(rows, columns), count)


def spread(hashes: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Shards of 64-bit hashes: by the upper bits, which are mixed best."""
    shards: npt.NDArray[np.int64] = ((hashes.view(np.uint64) >> np.uint64(16)) % np.uint64(count)).astype(np.int64)
    return shards


@cache
def spark_keys(count: int) -> tuple[int, ...]:
    """For each shard the least grouping key that Spark puts into the partition of that number.

    Spark's partition is `pmod(hash(key), count)`. The numbers 0 to count - 1 themselves would collide, and leave
    partitions empty while others hold several shards.
    """
    keys: dict[int, int] = {}
    candidate = 0
    while len(keys) < count:
        keys.setdefault(_spark_hash(candidate) % count, candidate)
        candidate += 1
    return tuple(keys[shard] for shard in range(count))


def _spark_hash(value: int) -> int:
    """Spark's `hash` of an int: MurmurHash3 of 32 bits."""
    mixed = _rotate((value * 0xCC9E2D51) & _WORD, 15) * 0x1B873593 & _WORD
    state = (_rotate(_SEED ^ mixed, 13) * 5 + 0xE6546B64) & _WORD
    state ^= 4
    state = ((state ^ state >> 16) * 0x85EBCA6B) & _WORD
    state = ((state ^ state >> 13) * 0xC2B2AE35) & _WORD
    state ^= state >> 16
    return state - (1 << 32) if state >> 31 else state


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _WORD
