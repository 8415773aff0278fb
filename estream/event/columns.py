"""Columns as exact 64-bit words: what keys are made of and masks compare. Text takes part through exact codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Texts:
    """The exact dictionary of texts: equal texts have equal codes, in every column and batch."""

    def __init__(self, values: list[str] | None = None) -> None:
        self.values: list[str] = list(values or [])
        self._codes: dict[str, int] = {value: code for code, value in enumerate(self.values)}

    def code(self, value: str) -> int:
        """The code of a text, a new one if it was not seen before."""
        code = self._codes.setdefault(value, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        return code

    def codes(self, column: pa.Array) -> Words:
        """The codes of a column; those of nulls mean nothing."""
        encoded = column.dictionary_encode() if not pa.types.is_dictionary(column.type) else column
        known = np.array([self.code(str(value)) for value in encoded.dictionary.to_pylist()] or [0], dtype=np.int64)
        indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return np.asarray(known[indices], dtype=np.int64)


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def nulls_of(column: pa.Array) -> Flags | None:
    """Where the column is null, or None if it is nowhere."""
    if column.null_count == 0:
        return None
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def word_kind(kind: pa.DataType) -> str:
    """What the words of a column of this type are."""
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "fraction"
    return "time" if pa.types.is_temporal(kind) else "text"


def words_of(column: pa.Array, texts: Texts) -> Words:
    """Exact words: equal values have equal words and others do not; the words of nulls mean nothing.

    Integers, times, dates and booleans are themselves. Of a fraction it is the bits, with one zero and one NaN.
    """
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return _numbers(column, np.int64)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return _numbers(column.cast(_in_microseconds(kind)).view(pa.int64()), np.int64)
    if pa.types.is_date(kind):
        return _numbers(column.cast(pa.date32()).view(pa.int32()), np.int64)
    if pa.types.is_floating(kind):
        values = floats_of(column) + 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.int64)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)):
        column = pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())
    return texts.codes(column)


def floats_of(column: pa.Array) -> npt.NDArray[np.float64]:
    """Numbers as doubles; those of nulls mean nothing."""
    return _numbers(column.cast(pa.float64()), np.float64)


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")


def _numbers(column: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    filled = pc.fill_null(column, False if pa.types.is_boolean(column.type) else 0) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False)).astype(dtype, copy=False)
