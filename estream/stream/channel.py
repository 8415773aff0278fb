"""Channels: durable append-only streams in a folder, with integer offsets, for many writers and readers.

Rows are numbered from 0. Writers take turns by a lock on a file, so appends are whole and offsets without gaps. Readers
take no lock and list no folder: what they do costs the same whatever the history.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from estream.errors import EStreamError
from estream.stream.channel_retention import Readers, Retention, expired
from estream.stream.channel_schema import conform, describe_difference, stamped
from estream.stream.channel_segment import NO_WATERMARK, NO_WRITER, ONCE, Entry, Segment, replace, sync_folder

SEGMENT_BYTES: Final = 64 * 1024 * 1024
SEGMENT_BLOCKS: Final = 4096
"""A segment that has reached one of these is followed by the next one."""
LARGEST_BLOCK: Final = 1024 * 1024 * 1024
_TIME: Final = b"estream.time"


@dataclass(frozen=True, slots=True)
class Block:
    """Rows that were appended together, or what a reader asked of them."""

    offset: int
    rows: pa.RecordBatch
    watermark: int | None
    """What the writer promised: no row of it to come is older; microseconds since the epoch."""
    appended: int
    end: int
    """The offset after it; greater by one than `offset` where it has no rows and only carries a watermark."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """The segments that are there, and the last version of each writer before the last segment."""

    first: int
    last: int
    writers: dict[int, int]


class Channel:
    """A channel in a folder. It is made by `create`, or by the first append with the schema of its rows."""

    def __init__(
        self,
        path: Path | str,
        retention: Retention | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
        segment_blocks: int = SEGMENT_BLOCKS,
    ) -> None:
        """`clock` gives microseconds since the epoch."""
        self.path = Path(path)
        self.readers = Readers(self.path / "readers")
        self._retention = retention or Retention()
        self._clock = clock
        self._segment_blocks = segment_blocks

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.path.name

    @property
    def exists(self) -> bool:
        """Whether it has been made."""
        return (self.path / "schema.arrow").is_file()

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows."""
        if not self.exists:
            raise EStreamError(f"there is no channel '{self.name}' in {self.path.parent}")
        return pa.ipc.read_schema(pa.py_buffer((self.path / "schema.arrow").read_bytes()))

    @property
    def time(self) -> str | None:
        """The column that gets the time of the append where a row has none."""
        found = (self.schema.metadata or {}).get(_TIME)
        return found.decode() if found else None

    def create(self, schema: pa.Schema, time: str | None = None) -> Channel:
        """Make the channel, or see that the one that is there has these columns.

        One that never had a row takes the new columns: who reads it may have made it before who writes to it.
        """
        if time is not None:
            schema = schema.with_metadata({_TIME: time.encode()})
        self.path.mkdir(parents=True, exist_ok=True)
        with self._locked():
            if not self.exists:
                Segment(self.path, 0).create(0)
                self._write_ends(_Ends(0, 0, {}))
                replace(self.path / "schema.arrow", schema.serialize().to_pybytes())
                sync_folder(self.path.parent)
            elif not self.schema.equals(schema) and self._is_new():
                replace(self.path / "schema.arrow", schema.serialize().to_pybytes())
        if difference := describe_difference(self.schema, schema):
            raise EStreamError(f"channel '{self.name}' is there with other columns: {difference}")
        return self

    def append(self, table: pa.Table, watermark: int | None = None, writer: str = "", version: int = 0) -> int:
        """Add the rows as one block, whole or not at all; gives the offset of the first.

        A named writer numbers its appends upwards by `version`: one that is not above its last is not added again, so a
        repeated micro-batch is harmless; -1 is given then. A table without rows carries its watermark.
        """
        if not self.exists:
            self.create(table.schema)
        name = _writer(writer)
        with self._locked():
            if name != NO_WRITER and version <= self._version(name):
                return -1
            return self._write(table, watermark, name, version).offset

    def append_once(self, table: pa.Table, key: str, is_repeated: bool) -> int:
        """Add the rows as one block unless one with this key is there; gives the time it was appended.

        The key is looked for only if `is_repeated`: if who appends may have done so before.
        """
        name = _writer(key)
        with self._locked():
            found = self._named(name) if is_repeated else None
            return (found or self._write(table, None, name, ONCE)).appended

    def first(self) -> int:
        """The offset of the oldest row that is kept."""
        return Segment(self.path, self._ends().first).base()

    def latest(self, start: int = 0, limit: int | None = None) -> int:
        """The offset after the last row, or after `limit` rows from `start`: what to read up to."""
        end = self._end(durable=True)
        return end if limit is None else max(min(end, start + limit), start)

    def read(self, start: int = 0, limit: int | None = None) -> Iterator[Block]:
        """The blocks from an offset on, the first and the last cut to what was asked for."""
        end = self.latest(start, limit)
        if start >= end:
            return
        self._require(start)
        try:
            yield from self._blocks(start, end)
        except FileNotFoundError:
            # Another process removed the segment between two steps of ours.
            self._require(start)
            raise

    def backlog(self) -> int | None:
        """How many rows the slowest reader has not read; nothing if no reader is known."""
        slowest = self.readers.slowest()
        return None if slowest is None else max(self._end() - max(slowest, self.first()), 0)

    def prune(self) -> int:
        """Remove what the retention no longer keeps; gives the number of segments removed."""
        with self._locked():
            return self._prune(self._ends())

    def _end(self, durable: bool = False) -> int:
        segment = Segment(self.path, self._ends().last)
        entry = segment.last(durable)
        return entry.end if entry else segment.base()

    def _is_new(self) -> bool:
        ends = self._ends()
        return ends.last == 0 and Segment(self.path, 0).last() is None

    def _require(self, start: int) -> None:
        """Refuse to read what is gone."""
        first = self.first()
        if start < first:
            raise EStreamError(
                f"channel '{self.name}': rows {start} to {first - 1} are gone, its retention removed them; "
                "read from the first that is kept, or keep them longer"
            )

    def _blocks(self, start: int, end: int) -> Iterator[Block]:
        ends, schema = self._ends(), self.schema
        for number in range(self._find(start, ends), ends.last + 1):
            segment = Segment(self.path, number)
            for entry in segment.entries(start):
                if entry.offset >= end:
                    return
                rows = pa.RecordBatch.from_pylist([], schema)
                if entry.rows:
                    rows = pa.ipc.read_record_batch(pa.py_buffer(segment.block(entry)), schema)
                yield _cut(entry, rows, start, end)

    def _block(self, rows: pa.Table) -> bytes:
        batches = rows.combine_chunks().to_batches()
        if not batches:
            return b""
        block: bytes = batches[0].serialize().to_pybytes()
        if len(batches) > 1 or len(block) > LARGEST_BLOCK:
            raise EStreamError(f"channel '{self.name}': one append has at most {LARGEST_BLOCK} bytes; split it")
        return block

    def _write(self, table: pa.Table, watermark: int | None, writer: int, version: int) -> Entry:
        rows = conform(table, self.schema, f"channel '{self.name}'")
        segment, position, last = self._writable()
        now = max(self._clock(), last.appended + 1 if last else 0)
        block = self._block(stamped(rows, self.time, now))
        offset = last.end if last else segment.base()
        mark = NO_WATERMARK if watermark is None else watermark
        size = len(block)
        entry = Entry(offset, rows.num_rows, position, size, mark, now, writer, version, zlib.crc32(block))
        segment.write(entry, block)
        return entry

    def _writable(self) -> tuple[Segment, int, Entry | None]:
        """The segment to write to, where its next block goes, and the last entry of the channel, if there is one."""
        ends = self._ends()
        segment = Segment(self.path, ends.last)
        count, last = segment.recover()
        if last is None:
            before = Segment(self.path, ends.last - 1).last() if ends.last > ends.first else None
            return segment, 0, before
        position = last.position + last.length
        if position < SEGMENT_BYTES and count < self._segment_blocks:
            return segment, position, last
        self._prune(self._roll(ends, last))
        return Segment(self.path, ends.last + 1), 0, last

    def _roll(self, ends: _Ends, last: Entry) -> _Ends:
        fresh = Segment(self.path, ends.last + 1)
        fresh.create(last.end)
        sync_folder(self.path)
        rolled = _Ends(ends.first, fresh.number, self._versions(Segment(self.path, ends.last), ends))
        self._write_ends(rolled)
        return rolled

    def _prune(self, ends: _Ends) -> int:
        newest = Segment(self.path, ends.last).recover()[1]
        if newest is not None and self._retention.is_old(newest.appended, self._clock()):
            ends = self._roll(ends, newest)
        segments = [Segment(self.path, number) for number in range(ends.first, ends.last)]
        gone = expired(segments, Segment(self.path, ends.last), self._retention, self.readers.slowest(), self._clock())
        if gone:
            # The ends go first: a crash in between leaves files that nobody reads, never a hole.
            self._write_ends(_Ends(ends.first + gone, ends.last, ends.writers))
        for segment in segments[:gone]:
            segment.remove()
        return gone

    def _version(self, writer: int) -> int:
        ends = self._ends()
        return self._versions(Segment(self.path, ends.last), ends).get(writer, -1)

    def _named(self, writer: int) -> Entry | None:
        ends = self._ends()
        segments = (Segment(self.path, number) for number in range(ends.last, ends.first - 1, -1))
        return next((found for segment in segments if (found := segment.named(writer))), None)

    def _versions(self, segment: Segment, ends: _Ends) -> dict[int, int]:
        records = segment.records()
        named = records[(records["writer"] != NO_WRITER) & (records["version"] != ONCE)]
        return ends.writers | dict(zip(named["writer"].tolist(), named["version"].tolist(), strict=True))

    def _find(self, offset: int, ends: _Ends) -> int:
        """The segment in which an offset is, by halving: no folder is listed."""
        low, high = ends.first, ends.last
        while low < high:
            middle = (low + high + 1) // 2
            if Segment(self.path, middle).base() <= offset:
                low = middle
            else:
                high = middle - 1
        return low

    def _ends(self) -> _Ends:
        if not self.exists:
            raise EStreamError(f"there is no channel '{self.name}' in {self.path.parent}")
        found = json.loads((self.path / "ends.json").read_bytes())
        return _Ends(found["first"], found["last"], {int(name): at for name, at in found["writers"].items()})

    def _write_ends(self, ends: _Ends) -> None:
        content = {"first": ends.first, "last": ends.last, "writers": ends.writers}
        replace(self.path / "ends.json", json.dumps(content).encode())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time, threads and processes alike; the system frees the lock of a process that dies."""
        with (self.path / "lock").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _cut(entry: Entry, rows: pa.RecordBatch, start: int, end: int) -> Block:
    """What a reader asked for of a block."""
    skip = max(start - entry.offset, 0)
    asked = rows.slice(skip, max(min(end, entry.end) - entry.offset - skip, 0))
    watermark = None if entry.watermark == NO_WATERMARK else entry.watermark
    return Block(entry.offset + skip, asked, watermark, entry.appended, min(entry.end, end))


def _writer(name: str) -> int:
    """The number by which a named writer is known in the index."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) | 1 if name else NO_WRITER
