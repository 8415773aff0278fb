"""The bytes of a segment: a mark, a version, a checksum, then an Arrow stream. Nothing in it is ever executed."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.errors import EStreamError

Words = npt.NDArray[np.int64]
Facts = Mapping[str, Any]

MARK = b"EStream\n"
VERSION = 1
_HEAD = struct.Struct("<8sII")
_FACTS = b"estream"


def encode_table(table: pa.Table, facts: Facts) -> bytes:
    """A table, and facts about it that JSON can say."""
    told = json.dumps(facts, sort_keys=True).encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema.with_metadata({_FACTS: told})) as writer:
        writer.write_table(table)
    payload = memoryview(sink.getvalue())
    return b"".join((_HEAD.pack(MARK, VERSION, zlib.crc32(payload)), payload))


def encode_arrays(arrays: Mapping[str, Words], facts: Facts) -> bytes:
    """Arrays of words, each of its own length."""
    columns = {
        name: pa.LargeListArray.from_arrays(pa.array([0, array.size], pa.int64()), pa.array(array.reshape(-1)))
        for name, array in arrays.items()
    }
    return encode_table(pa.table(columns), facts)


def decode_table(name: str, data: bytes) -> tuple[pa.Table, Facts]:
    """What `encode_table` was given; says which segment is not readable, and why."""
    if len(data) < _HEAD.size or not data.startswith(MARK):
        raise EStreamError(f"state segment '{name}' was not written by EStream")
    _, version, checksum = _HEAD.unpack_from(data)
    if version > VERSION:
        raise EStreamError(
            f"state segment '{name}' has version {version}, this EStream reads up to {VERSION}; use a newer EStream"
        )
    payload = pa.py_buffer(data)[_HEAD.size :]
    if zlib.crc32(payload) != checksum:
        raise EStreamError(f"state segment '{name}' is damaged: its checksum is wrong")
    with pa.ipc.open_stream(payload) as reader:
        table = reader.read_all()
    return table, json.loads(table.schema.metadata[_FACTS])


def decode_arrays(name: str, data: bytes) -> tuple[dict[str, Words], Facts]:
    """What `encode_arrays` was given."""
    table, facts = decode_table(name, data)
    arrays = {column: table.column(column).chunk(0).values.to_numpy() for column in table.column_names}
    return arrays, facts
