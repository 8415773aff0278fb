"""Exact words for keys: text of up to seven bytes is its own word, so that most keys need no dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import Texts, words_of
from estream.event.compiled import compiled

Words = npt.NDArray[np.int64]
SHORT = 7
"""Bytes that fit into a word beside their number."""
CODE = -1 << 56
"""Marks a word that is the code of a longer text: its first byte is 255."""


@compiled
def pack(offsets: npt.NDArray[Any], content: npt.NDArray[np.uint8], out: Words) -> bool:
    """The bytes of each short text and how many there are, as a word; gives whether all were short."""
    short = True
    for row in range(len(out)):
        begin, length = offsets[row], offsets[row + 1] - offsets[row]
        if length > SHORT:
            short = False
            out[row] = CODE
            continue
        word = np.int64(length)
        for place in range(begin, begin + length):
            word = (word << 8) | np.int64(content[place])
        out[row] = word
    return short


def decoded(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with plain columns in the place of those that a dictionary encodes."""
    return rows if rows.schema.equals(schema) else rows.cast(schema)


def key_words(column: pa.Array, texts: Texts) -> Words:
    """As `estream.event.columns.words_of`: equal values have equal words and others do not."""
    if pa.types.is_dictionary(column.type):
        words = np.append(key_words(column.dictionary, texts), 0)
        return np.asarray(words[column.indices.fill_null(len(column.dictionary)).to_numpy()])
    if not pa.types.is_string(column.type):
        return words_of(column, texts)
    _, offset_bytes, content_bytes = column.buffers()
    out = np.empty(len(column), dtype=np.int64)
    if offset_bytes is None or len(column) == 0:
        return out
    offsets = np.frombuffer(offset_bytes, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    content = np.frombuffer(content_bytes or b"", dtype=np.uint8)
    if not pack(offsets, content, out):
        long = np.flatnonzero(out == CODE)
        out[long] = texts.codes(column.take(pa.array(long))) | CODE
    return out
