"""Ids of rows: a 64-bit hash of attribute values that is the same on every machine and in every version.

Each value is one word (integers, times in microseconds and dates as they are, fractions by their bits with one zero and
one NaN, text and all else by BLAKE2b of its text); a null is a word of its own. The words are mixed in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import Texts, nulls_of, one_chunk, words_of
from estream.event.compiled import compiled

Words = npt.NDArray[np.int64]
NULL_WORD = 0x6E756C6C
SEED = 0x45537472
SPREAD = -7046029254386353131
"""2**64 divided by the golden ratio, odd: spreads numbers that differ in their low bits."""


def text_hash(text: str) -> int:
    """64 bits that stand for a text, the same everywhere."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


@compiled
def mix(state: int, word: int) -> int:
    """Take one more word into a 64-bit hash (the multipliers of MurmurHash3's finisher)."""
    state = (state ^ word) * -49064778989728563
    state = (state ^ ((state >> 33) & 0x7FFFFFFF)) * -4265267296055464877
    return state ^ ((state >> 29) & 0x7FFFFFFFF)


@compiled
def mix_column(states: Words, column: Words) -> None:
    """Take a column into the hashes of its rows."""
    for row in range(len(states)):
        states[row] = mix(states[row], column[row])


def row_ids(rows: pa.Table, columns: Sequence[str]) -> Words:
    """The hash of these columns for every row."""
    states = np.full(rows.num_rows, SEED, dtype=np.int64)
    for name in columns:
        column = one_chunk(rows.column(name))
        texts = Texts()
        values = words_of(column, texts)
        if texts.values:
            values = np.array([text_hash(text) for text in texts.values], dtype=np.int64)[values]
        missing = nulls_of(column)
        mix_column(states, values if missing is None else np.where(missing, NULL_WORD, values))
    return states
