"""Segments in chunks of Spark's map state, and the worker's copy of them.

Spark gives a shard now to one worker, now to another. A worker that had it before reads only the chunks that were
written since: the last saves are named with what they changed. So a micro-batch costs what changed, not what waits.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

CHUNK = 1 << 20
"""The most bytes of a value: larger ones make the state store slow."""
REMEMBERED = 1 << 13
"""The most characters of what the last saves changed: it is written with every save."""
SEPARATOR = "\x1f"
"""Between the parts of a key: prefix, segment, number of the chunk."""

_HEAD = "head"


class Chunks(Protocol):
    """What the state needs of Spark's map state."""

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None: ...
    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None: ...
    def removeKey(self, key: tuple[str]) -> None: ...
    def iterator(self) -> Iterator[tuple[tuple[str], tuple[bytes]]]: ...


@dataclass(slots=True)
class Copy:
    """The chunks as they were after one save, which its token tells from every other."""

    token: str = ""
    values: dict[str, bytes] = field(default_factory=dict)
    """Key to chunk."""
    saves: list[tuple[str, list[str]]] = field(default_factory=list)
    """The last saves, the oldest first: the token before, and the keys that were written or removed."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What goes with every save, beside the segments."""
    _changed: set[str] = field(default_factory=set)

    def refresh(self, chunks: Chunks) -> bool:
        """Be what was saved last; false if nothing was ever saved."""
        head = chunks.getValue((_HEAD,))
        if head is None:
            return False
        last = json.loads(head[0])
        self.facts, self.saves = last["facts"], [(before, changed) for before, changed in last["saves"]]
        if self.token != last["token"]:
            self._catch_up(chunks)
            self.token = last["token"]
        return True

    def _catch_up(self, chunks: Chunks) -> None:
        known = [before for before, _ in self.saves]
        if self.token not in known:
            self.values = {key: bytes(value) for (key,), (value,) in chunks.iterator() if key != _HEAD}
            return
        for key in {key for _, changed in self.saves[known.index(self.token) :] for key in changed}:
            value = chunks.getValue((key,))
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = bytes(value[0])

    def segments(self) -> dict[str, bytes]:
        """All segments, put together."""
        parts: dict[str, dict[int, bytes]] = {}
        for key, value in self.values.items():
            name, _, number = key.rpartition(SEPARATOR)
            parts.setdefault(name, {})[int(number)] = value
        return {name: b"".join(pieces[number] for number in sorted(pieces)) for name, pieces in parts.items()}

    def write(self, chunks: Chunks, name: str, data: bytes) -> None:
        """Write a segment in the place of what it was."""
        count = max(1, -(-len(data) // CHUNK))
        for number in range(count):
            key = f"{name}{SEPARATOR}{number}"
            value = data[number * CHUNK : (number + 1) * CHUNK]
            if self.values.get(key) != value:
                chunks.updateValue((key,), (value,))
                self.values[key] = value
                self._changed.add(key)
        self._remove_from(chunks, name, count)

    def remove(self, chunks: Chunks, name: str) -> None:
        """Remove a segment."""
        self._remove_from(chunks, name, 0)

    def _remove_from(self, chunks: Chunks, name: str, number: int) -> None:
        while (key := f"{name}{SEPARATOR}{number}") in self.values:
            chunks.removeKey((key,))
            del self.values[key]
            self._changed.add(key)
            number += 1

    def commit(self, chunks: Chunks, facts: Mapping[str, Any]) -> None:
        """End a save, under a new token."""
        self.saves.append((self.token, sorted(self._changed)))
        while sum(len(before) + sum(map(len, changed)) for before, changed in self.saves) > REMEMBERED:
            del self.saves[0]
        self.token, self.facts, self._changed = uuid.uuid4().hex, facts, set()
        head = {"token": self.token, "facts": facts, "saves": self.saves}
        chunks.updateValue((_HEAD,), (json.dumps(head).encode(),))
