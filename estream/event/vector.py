"""Columns of a batch as values and null flags, from Arrow and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.spec.types import DataType

Flags = npt.NDArray[np.bool_]

_NUMPY: dict[str, type[np.generic]] = {
    "tinyint": np.int8,
    "smallint": np.int16,
    "int": np.int32,
    "bigint": np.int64,
    "float": np.float32,
    "double": np.float64,
    "boolean": np.bool_,
    "date": np.int32,
    "timestamp": np.int64,
    "interval": np.int64,
    "void": np.bool_,
}
_ARROW: dict[str, Any] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "interval": pa.duration("us"),
    "void": pa.null(),
}


@dataclass(frozen=True, slots=True)
class Vector:
    """Values of one type: a numpy array with zero (False) where null, or for text an Arrow array with its nulls."""

    values: Any
    nulls: Flags


def numpy_type(kind: DataType) -> type[np.generic]:
    """How numpy holds values of the type: dates are days, times and intervals microseconds."""
    return _NUMPY[kind.name]


def from_arrow(array: Any, kind: DataType) -> Vector:
    """A column as the declared type says; timestamps may come as Arrow timestamps of any unit or as microseconds."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array.type, pa.DictionaryType):
        array = array.dictionary_decode()
    nulls: Flags = array.is_null().to_numpy(zero_copy_only=False)
    if kind.name not in _NUMPY:
        return Vector(array.cast(pa.string()) if kind.name == "string" else array, nulls)
    if kind.name == "timestamp" and pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us", array.type.tz))
    if not pa.types.is_integer(array.type) or kind.name not in ("date", "timestamp", "interval"):
        array = pa.nulls(len(array), pa.bool_()) if kind.name == "void" else array
        array = (
            array
            if pa.types.is_timestamp(array.type)
            else array.cast(_ARROW[kind.name] if kind.name != "void" else pa.bool_())
        )
    if kind.name in ("date", "timestamp", "interval"):
        array = array.cast(pa.int32() if kind.name == "date" else pa.int64())
    filled = array.fill_null(False if kind.name in ("boolean", "void") else 0)
    return Vector(filled.to_numpy(zero_copy_only=False).astype(_NUMPY[kind.name], copy=False), nulls)


def to_arrow(vector: Vector, kind: DataType) -> Any:
    """The Arrow array of the type; timestamps are in UTC."""
    if kind.name not in _NUMPY:
        return vector.values
    if kind.name == "void":
        return pa.nulls(len(vector.nulls))
    plain = pa.array(np.ascontiguousarray(vector.values), mask=np.ascontiguousarray(vector.nulls))
    return plain.cast(_ARROW[kind.name])


def constant(value: Any, kind: DataType, length: int) -> Vector:
    """One value for every row."""
    nulls = np.broadcast_to(np.bool_(value is None), length)
    if kind.name == "string":
        return Vector(
            pa.nulls(length, pa.string()) if value is None else pa.repeat(pa.scalar(value, pa.string()), length), nulls
        )
    return Vector(np.broadcast_to(_NUMPY[kind.name](0 if value is None else value), length), nulls)
