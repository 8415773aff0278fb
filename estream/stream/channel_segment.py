"""One segment of a channel: a file of blocks, and an index with a record of fixed width for each of them.

A block counts once its record is in the index. What a writer left behind when it died is either bytes that no
record names or a record that is not whole: readers do not see it, and the next writer cuts it off.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

_HEADER: Final = struct.Struct("<8sq")
_MAGIC: Final = b"ESTREAM1"
_BODY: Final = struct.Struct("<qqqqqqQqI")
_SUM: Final = struct.Struct("<I")
_WIDTH: Final = _BODY.size + _SUM.size
_RECORDS: Final = np.dtype(
    [(name, "<i8") for name in ("offset", "rows", "position", "length", "watermark", "appended")]
    + [("writer", "<u8"), ("version", "<i8"), ("checksum", "<u4"), ("own_sum", "<u4")]
)
NO_WATERMARK: Final = -(2**63)
NO_WRITER: Final = 0
ONCE: Final = -(2**63)
"""The version of a block that its writer's name stands for: no other of that name is added."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index says of a block."""

    offset: int
    """Of its first row."""
    rows: int
    position: int
    length: int
    watermark: int
    appended: int
    """When it was appended, in microseconds since the epoch."""
    writer: int
    version: int
    checksum: int

    @property
    def end(self) -> int:
        """The offset after it; a block without rows takes one offset too, so that a reader learns of its watermark."""
        return self.offset + max(self.rows, 1)

    def to_bytes(self) -> bytes:
        """The record, with a checksum of its own."""
        body = _BODY.pack(*astuple(self))
        return body + _SUM.pack(zlib.crc32(body))

    @classmethod
    def from_bytes(cls, record: bytes) -> Entry | None:
        """The entry of a record; nothing if the record is not whole."""
        body = record[: _BODY.size]
        if len(record) != _WIDTH or _SUM.unpack(record[_BODY.size :])[0] != zlib.crc32(body):
            return None
        return cls(*_BODY.unpack(body))


@dataclass(frozen=True, slots=True)
class Segment:
    """The two files of a segment."""

    folder: Path
    number: int

    @property
    def data(self) -> Path:
        """The file of its blocks."""
        return self.folder / f"{self.number:010}.data"

    @property
    def index(self) -> Path:
        """The file of its records."""
        return self.folder / f"{self.number:010}.index"

    def create(self, base: int) -> None:
        """Begin the segment, empty, at this offset; what a writer that died left under its number is gone."""
        for path, content in ((self.data, b""), (self.index, _HEADER.pack(_MAGIC, base))):
            with path.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())

    def remove(self) -> None:
        """Take both files away."""
        self.index.unlink(missing_ok=True)
        self.data.unlink(missing_ok=True)

    def base(self) -> int:
        """The offset of its first row."""
        with self.index.open("rb") as file:
            magic, base = _HEADER.unpack(file.read(_HEADER.size))
        if magic != _MAGIC:
            raise OSError(f"{self.index}: this is no index of a channel")
        return int(base)

    def last(self, durable: bool = False) -> Entry | None:
        """Its last entry; `durable` waits until the disk has it, so that no reader goes ahead of a crash."""
        with self.index.open("rb") as file:
            _, entry = _tail(file.fileno())
            if entry is not None and durable:
                os.fsync(file.fileno())
        return entry

    def records(self) -> npt.NDArray[np.void]:
        """All records as one array, in order of offset."""
        content = self.index.read_bytes()[_HEADER.size :]
        count = len(content) // _WIDTH
        while count and Entry.from_bytes(content[(count - 1) * _WIDTH : count * _WIDTH]) is None:
            count -= 1
        return np.frombuffer(content, _RECORDS, count)

    def named(self, writer: int) -> Entry | None:
        """The entry of the block that a name stands for."""
        records = self.records()
        found = records[(records["writer"] == writer) & (records["version"] == ONCE)]
        return Entry(*found[0].tolist()[:-1]) if len(found) else None

    def entries(self, offset: int) -> list[Entry]:
        """The entries that reach beyond the offset."""
        records = self.records()
        first = max(int(np.searchsorted(records["offset"], offset, "right")) - 1, 0)
        return [Entry(*record.tolist()[:-1]) for record in records[first:] if _end(record) > offset]

    def block(self, entry: Entry) -> bytes:
        """The bytes of a block, as they were written."""
        with self.data.open("rb") as file:
            content = os.pread(file.fileno(), entry.length, entry.position)
        if len(content) != entry.length or zlib.crc32(content) != entry.checksum:
            raise OSError(f"{self.data}: the block at row {entry.offset} is damaged")
        return content

    def recover(self) -> tuple[int, Entry | None]:
        """Cut off what a writer that died left behind: how many records are whole, and the last entry.

        Only for the holder of the channel's lock.
        """
        with self.index.open("rb") as file:
            count, last = _tail(file.fileno())
        end = 0 if last is None else last.position + last.length
        for path, size in ((self.index, _HEADER.size + count * _WIDTH), (self.data, end)):
            if path.stat().st_size > size:
                os.truncate(path, size)
        return count, last

    def write(self, entry: Entry, block: bytes) -> None:
        """Add a block, then its record; each is on the disk before the next step."""
        _append(self.data, block)
        _append(self.index, entry.to_bytes())


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names of new files."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(path: Path, content: bytes) -> None:
    """Write a whole file so that a reader sees the old one or the new one."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
    sync_folder(path.parent)


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _tail(index: int) -> tuple[int, Entry | None]:
    """How many records are whole, and the last of them."""
    count = max(os.fstat(index).st_size - _HEADER.size, 0) // _WIDTH
    while count:
        entry = Entry.from_bytes(os.pread(index, _WIDTH, _HEADER.size + (count - 1) * _WIDTH))
        if entry is not None:
            return count, entry
        count -= 1
    return 0, None


def _end(record: np.void) -> int:
    return int(record["offset"]) + max(int(record["rows"]), 1)
