"""The state of a host on one shard: segments in chunks of Spark's map state, and a cache in the worker.

A worker is used again for the next micro-batch, mostly for the same shard. Then the state is still in its memory, which
is told by a token that is kept in both places; else it is loaded.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Protocol
from zlib import crc32

import pyarrow as pa

from estream.event import operator_segments
from estream.event.graph import Graph
from estream.event.operator import Operator, OperatorState
from estream.event.operator_chain import Chain, begin_chain
from estream.event.segments import Saved, load, save
from estream.event.state import State
from estream.stream.layout import Route
from estream.stream.pack import to_bytes, to_table
from estream.stream.watermark import Progress

CHUNK = 1 << 20
"""The most bytes of a value: larger ones make the state store slow."""

_HEAD, _PROGRESS, _PENDING = "head", "progress", "pending"
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
    operators: dict[str, tuple[OperatorState, ...]] = field(default_factory=dict)
    """By feed."""
    pending: dict[str, pa.Table] = field(default_factory=dict)
    """Relayed occurrences that the watermark of the second stage has not passed, by route and signature."""
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


@dataclass(frozen=True, slots=True)
class Programs:
    """What is run over the state: routes with their graphs, and the operators of feeds."""

    routes: Mapping[str, tuple[Route, Graph]]
    chains: Mapping[str, Chain]


def fetch(slot: Slot, chunks: Chunks, programs: Programs) -> Held:
    """The state: from the worker's memory if it is the last one written, else from the chunks."""
    head = chunks.getValue((_HEAD,))
    known = _cache.pop(slot.key, None)
    if head is not None and known is not None and known.token == json.loads(head[0])["token"]:
        return known
    return _load(chunks, programs) if head is not None else begin_held(programs)


def keep(slot: Slot, chunks: Chunks, held: Held, programs: Programs) -> None:
    """Write what changed, under a new token."""
    for prefix, saved in _saved(held, programs):
        for name in saved.removed:
            _remove(chunks, held, f"{prefix}{_SEPARATOR}{name}")
        for name, data in saved.segments.items():
            _write(chunks, held, f"{prefix}{_SEPARATOR}{name}", data)
    chunks.updateValue((_PROGRESS,), (json.dumps(asdict(held.progress)).encode(),))
    held.token = uuid.uuid4().hex
    chunks.updateValue((_HEAD,), (json.dumps({"token": held.token}).encode(),))
    _cache[slot.key] = held


def _saved(held: Held, programs: Programs) -> Iterator[tuple[str, Saved]]:
    """What changed, each part under its own name."""
    for label, state in held.states.items():
        yield label, save(programs.routes[label][1], state)
    for label, states in held.operators.items():
        for operator, own in zip(programs.chains[label].operators, states, strict=True):
            yield operator_name(label, operator), operator_segments.save(operator, own)
    have = {name.partition(_SEPARATOR)[2] for name in held.sizes if name.startswith(_PENDING + _SEPARATOR)}
    tables = {name: to_bytes(table) for name, table in held.pending.items() if table.num_rows}
    if have or tables:
        yield _PENDING, Saved(tables, frozenset(have - tables.keys()))


def operator_name(label: str, operator: Operator) -> str:
    """Where the state of an operator is kept. One of another shape is kept elsewhere: it begins anew."""
    return f"{label} {'+'.join(query.name for query in operator.queries)} {crc32(operator.shape.encode()):08x}"


def begin_held(programs: Programs) -> Held:
    """The state of a shard that has seen nothing."""
    return Held(
        "",
        Progress(),
        {label: load(graph, {})[0] for label, (_, graph) in programs.routes.items()},
        {label: begin_chain(chain) for label, chain in programs.chains.items()},
    )


def _load(chunks: Chunks, programs: Programs) -> Held:
    parts: dict[str, dict[int, bytes]] = {}
    for (key,), (value,) in chunks.iterator():
        name, _, number = key.rpartition(_SEPARATOR)
        if name:
            parts.setdefault(name, {})[int(number)] = bytes(value)
    segments: dict[str, dict[str, bytes]] = {}
    for name, pieces in parts.items():
        prefix, _, segment = name.partition(_SEPARATOR)
        segments.setdefault(prefix, {})[segment] = b"".join(pieces[number] for number in sorted(pieces))
    progress = chunks.getValue((_PROGRESS,))
    held = Held(
        token="",
        progress=Progress(**json.loads(progress[0])) if progress is not None else Progress(),
        states={label: load(graph, segments.get(label, {}))[0] for label, (_, graph) in programs.routes.items()},
        operators={
            label: tuple(_operator_state(label, operator, segments) for operator in chain.operators)
            for label, chain in programs.chains.items()
        },
        pending={name: to_table(data) for name, data in segments.get(_PENDING, {}).items()},
        sizes={name: len(pieces) for name, pieces in parts.items()},
    )
    known = {_PENDING, *programs.routes}
    known |= {operator_name(label, one) for label, chain in programs.chains.items() for one in chain.operators}
    for name in [name for name in parts if name.partition(_SEPARATOR)[0] not in known]:
        _remove(chunks, held, name)
    return held


def _operator_state(label: str, operator: Operator, segments: Mapping[str, Mapping[str, bytes]]) -> OperatorState:
    return operator_segments.load(operator, segments.get(operator_name(label, operator), {}))


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
