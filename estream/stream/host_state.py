"""The state of a host on one shard: segments in chunks of Spark's map state, and a cache in the worker.

A worker is used again for the next micro-batch, mostly for the same shard. Then the state is still in its memory, which
is told by a token that is kept in both places; else it is loaded.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from estream.event.graph import Graph
from estream.event.segments import load, save
from estream.event.state import State
from estream.stream.layout import Route
from estream.stream.watermark import Progress

CHUNK = 1 << 20
"""The most bytes of a value: larger ones make the state store slow."""

_HEAD, _PROGRESS = "head", "progress"
_SEPARATOR = "\x1f"


class Chunks(Protocol):
    """What the state needs of Spark's map state."""

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None: ...
    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None: ...
    def removeKey(self, key: tuple[str]) -> None: ...
    def iterator(self) -> Iterator[tuple[tuple[str], tuple[bytes]]]: ...


@dataclass(slots=True)
class Held:
    """The state of one shard and stage."""

    token: str
    progress: Progress
    states: dict[str, State]
    sizes: dict[str, int] = field(default_factory=dict)
    """Segment to its number of chunks."""


_cache: dict[tuple[str, int, int], Held] = {}
"""Of this worker, by (run, stage, shard)."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Which state: `run` tells queries, and versions of a plan, apart."""

    run: str
    stage: int
    shard: int

    @property
    def key(self) -> tuple[str, int, int]:
        return self.run, self.stage, self.shard


def fetch(slot: Slot, chunks: Chunks, routes: Mapping[str, tuple[Route, Graph]]) -> Held:
    """The state: from the worker's memory if it is the last one written, else from the chunks."""
    head = chunks.getValue((_HEAD,))
    known = _cache.pop(slot.key, None)
    if head is not None and known is not None and known.token == json.loads(head[0])["token"]:
        return known
    return _load(chunks, routes) if head is not None else _begin(routes)


def keep(slot: Slot, chunks: Chunks, held: Held, routes: Mapping[str, tuple[Route, Graph]]) -> None:
    """Write what changed, under a new token."""
    for label, state in held.states.items():
        saved = save(routes[label][1], state)
        for name in saved.removed:
            _remove(chunks, held, f"{label}{_SEPARATOR}{name}")
        for name, data in saved.segments.items():
            _write(chunks, held, f"{label}{_SEPARATOR}{name}", data)
    chunks.updateValue((_PROGRESS,), (json.dumps(asdict(held.progress)).encode(),))
    held.token = uuid.uuid4().hex
    chunks.updateValue((_HEAD,), (json.dumps({"token": held.token}).encode(),))
    _cache[slot.key] = held


def _begin(routes: Mapping[str, tuple[Route, Graph]]) -> Held:
    return Held("", Progress(), {label: load(graph, {})[0] for label, (_, graph) in routes.items()})


def _load(chunks: Chunks, routes: Mapping[str, tuple[Route, Graph]]) -> Held:
    parts: dict[str, dict[int, bytes]] = {}
    for (key,), (value,) in chunks.iterator():
        name, _, number = key.rpartition(_SEPARATOR)
        if name:
            parts.setdefault(name, {})[int(number)] = bytes(value)
    segments: dict[str, dict[str, bytes]] = {}
    for name, pieces in parts.items():
        label, _, segment = name.partition(_SEPARATOR)
        segments.setdefault(label, {})[segment] = b"".join(pieces[number] for number in sorted(pieces))
    progress = chunks.getValue((_PROGRESS,))
    held = Held(
        token="",
        progress=Progress(**json.loads(progress[0])) if progress is not None else Progress(),
        states={label: load(graph, segments.get(label, {}))[0] for label, (_, graph) in routes.items()},
        sizes={name: len(pieces) for name, pieces in parts.items()},
    )
    for name in [name for name in parts if name.partition(_SEPARATOR)[0] not in routes]:
        _remove(chunks, held, name)
    return held


def _write(chunks: Chunks, held: Held, name: str, data: bytes) -> None:
    count = max(1, -(-len(data) // CHUNK))
    for number in range(count):
        piece = data[number * CHUNK : (number + 1) * CHUNK]
        chunks.updateValue((f"{name}{_SEPARATOR}{number}",), (piece,))
    for number in range(count, held.sizes.get(name, 0)):
        chunks.removeKey((f"{name}{_SEPARATOR}{number}",))
    held.sizes[name] = count


def _remove(chunks: Chunks, held: Held, name: str) -> None:
    for number in range(held.sizes.pop(name, 0)):
        chunks.removeKey((f"{name}{_SEPARATOR}{number}",))


def forget(run: str) -> None:
    """Drop what the worker keeps of other runs."""
    for key in [key for key in _cache if key[0] != run]:
        del _cache[key]


def describe(held: Held) -> dict[str, Any]:
    """How large the state is, for people."""
    return {"segments": len(held.sizes), "chunks": sum(held.sizes.values())}
