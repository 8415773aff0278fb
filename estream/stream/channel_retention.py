"""How long a channel keeps its rows, and how far its readers are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from estream.duration import parse_duration
from estream.stream.channel_segment import Segment, replace


@dataclass(frozen=True, slots=True)
class Retention:
    """What may be removed: rows that are old or too many, once every reader has them.

    A reader that stays away holds rows back no longer than `keep`.
    """

    age: int = parse_duration("7 days")
    """In microseconds since the append."""
    size: int = 10 * 1024**3
    """Bytes of all segments."""
    keep: int = parse_duration("30 days")
    """In microseconds since the append."""

    def is_old(self, appended: int, now: int) -> bool:
        """Whether a block is older than is kept."""
        return now - appended > self.age

    def is_given_up(self, appended: int, now: int) -> bool:
        """Whether a block is so old that no reader is waited for."""
        return now - appended > self.keep


@dataclass(frozen=True, slots=True)
class Readers:
    """The offsets up to which the known readers have read, one small file each."""

    folder: Path

    def hold(self, reader: str, offset: int) -> None:
        """Note that the reader has everything before the offset, and needs what comes after it."""
        self.folder.mkdir(exist_ok=True)
        replace(self._file(reader), json.dumps({"reader": reader, "offset": offset}).encode())

    def release(self, reader: str) -> None:
        """Forget the reader: nothing is kept for it."""
        self._file(reader).unlink(missing_ok=True)

    def offsets(self) -> dict[str, int]:
        """Every reader and its offset."""
        if not self.folder.is_dir():
            return {}
        found: dict[str, int] = {}
        for file in sorted(self.folder.glob("*.json")):
            # A reader may be released between the listing and the reading.
            with suppress(FileNotFoundError):
                note = json.loads(file.read_bytes())
                found[note["reader"]] = note["offset"]
        return found

    def slowest(self) -> int | None:
        """The offset of the reader that is furthest behind."""
        return min(self.offsets().values(), default=None)

    def _file(self, reader: str) -> Path:
        return self.folder / f"{quote(reader, safe='')}.json"


def expired(segments: Sequence[Segment], active: Segment, retention: Retention, needed: int | None, now: int) -> int:
    """How many of the segments, from the oldest on, may be removed; the active one stays and counts for the size."""
    sizes = [segment.data.stat().st_size for segment in segments]
    total = sum(sizes) + active.data.stat().st_size
    for gone, (segment, size) in enumerate(zip(segments, sizes, strict=True)):
        last = segment.last()
        if last is not None:
            unwanted = retention.is_old(last.appended, now) or total > retention.size
            free = needed is None or last.end <= needed or retention.is_given_up(last.appended, now)
            if not (unwanted and free):
                return gone
        total -= size
    return len(segments)
