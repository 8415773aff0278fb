"""The worker's copy of a shard's segments: always what was saved last, and cheap to bring up to date."""

from __future__ import annotations

from collections.abc import Iterator

from estream.stream.chunked import CHUNK, REMEMBERED, Copy
from tests.stream.sharded import MemoryChunks


class CountedChunks(MemoryChunks):
    """Chunks that tell which keys were read, and how often all were."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []
        self.whole = 0

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        self.read.append(key[0])
        return super().getValue(key)

    def iterator(self) -> Iterator[tuple[tuple[str], tuple[bytes]]]:
        self.whole += 1
        return super().iterator()


def saved(copy: Copy, chunks: MemoryChunks, **segments: bytes | None) -> None:
    """Save these segments; those that are None are removed."""
    assert copy.refresh(chunks) or not chunks.values
    for name, data in segments.items():
        if data is None:
            copy.remove(chunks, name)
        else:
            copy.write(chunks, name, data)
    copy.commit(chunks, {"saved": sorted(segments)})


def test_a_worker_that_had_the_shard_before_reads_only_what_was_written_since() -> None:
    chunks, first, second = CountedChunks(), Copy(), Copy()
    saved(first, chunks, a=b"1", b=b"2" * (2 * CHUNK + 1), c=b"3")
    saved(second, chunks, a=b"one")
    saved(second, chunks, b=b"two", c=None)
    chunks.read.clear()
    chunks.whole = 0
    assert first.refresh(chunks)
    assert first.segments() == {"a": b"one", "b": b"two"}
    assert first.facts == {"saved": ["b", "c"]}
    assert chunks.whole == 0
    assert sorted(chunks.read) == ["a\x1f0", "b\x1f0", "b\x1f1", "b\x1f2", "c\x1f0", "head"]


def test_a_worker_that_never_had_the_shard_reads_all_of_it() -> None:
    chunks = CountedChunks()
    saved(Copy(), chunks, a=b"1", b=b"2")
    copy = Copy()
    assert copy.refresh(chunks)
    assert copy.segments() == {"a": b"1", "b": b"2"}


def test_nothing_is_there_before_the_first_save() -> None:
    assert not Copy().refresh(MemoryChunks())


def test_a_save_that_was_undone_is_not_believed() -> None:
    chunks, copy = CountedChunks(), Copy()
    saved(copy, chunks, a=b"1", b=b"2")
    before = dict(chunks.values)
    saved(copy, chunks, a=b"wrong", c=b"wrong")
    chunks.values = before
    saved(Copy(), chunks, b=b"right")
    assert copy.refresh(chunks)
    assert copy.segments() == {"a": b"1", "b": b"right"}


def test_a_chunk_that_did_not_change_is_not_written_again() -> None:
    chunks, copy = MemoryChunks(), Copy()
    saved(copy, chunks, a=b"1" * CHUNK + b"2")
    chunks.written.clear()
    saved(copy, chunks, a=b"1" * CHUNK + b"3")
    assert chunks.written == ["a\x1f1", "head"]


def test_what_is_remembered_of_saves_stays_small_and_who_is_too_far_behind_reads_all() -> None:
    chunks, first, second = CountedChunks(), Copy(), Copy()
    saved(first, chunks, a=b"0")
    for number in range(1000):
        saved(second, chunks, a=str(number).encode())
    assert len(chunks.values["head"]) < 4 * REMEMBERED
    chunks.whole = 0
    assert first.refresh(chunks)
    assert first.segments() == {"a": b"999"}
    assert chunks.whole == 1
