"""The state of a host on one shard: segments in chunks of Spark's map state, and a cache in the worker.

A worker is used again for the next micro-batch, often for the same shard. Then the state is still in its memory, which
is told by a token that is kept in both places; else its copy of the segments is brought up to date and loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from zlib import crc32

import pyarrow as pa

from estream.event import operator_segments
from estream.event.graph import Graph
from estream.event.operator import Operator, OperatorState
from estream.event.operator_chain import Chain, begin_chain
from estream.event.segments import Saved, load, save
from estream.event.state import State
from estream.stream.chunked import SEPARATOR, Chunks, Copy
from estream.stream.layout import Route
from estream.stream.pack import to_bytes, to_table
from estream.stream.watermark import BEGINNING, Progress

_PENDING = "pending"


@dataclass(slots=True)
class Held:
    """The state of one shard and stage."""

    progress: Progress
    states: dict[str, State]
    operators: dict[str, tuple[OperatorState, ...]] = field(default_factory=dict)
    """By feed."""
    pending: dict[str, pa.Table] = field(default_factory=dict)
    """Relayed occurrences that the watermark of the second stage has not passed, by route and signature."""
    saved_pending: frozenset[str] = frozenset()
    """Those of them that were saved."""
    copy: Copy = field(default_factory=Copy)
    """The state as it was saved last."""


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


def fetch(slot: Slot, chunks: Chunks, programs: Programs, since: int | None = None) -> Held:
    """The state: from the worker's memory if it is the last one written, else from the chunks.

    What is new begins at the watermark that was reached, or at `since` if that is given.
    """
    known = _cache.pop(slot.key, None)
    copy = Copy() if known is None else known.copy
    token = copy.token
    if not copy.refresh(chunks):
        return begin_held(programs, BEGINNING if since is None else since)
    return known if known is not None and copy.token == token else _load(copy, chunks, programs, since)


def keep(slot: Slot, chunks: Chunks, held: Held, programs: Programs) -> None:
    """Write what changed, under a new token."""
    for prefix, saved in _saved(held, programs):
        for name in saved.removed:
            held.copy.remove(chunks, f"{prefix}{SEPARATOR}{name}")
        for name, data in saved.segments.items():
            held.copy.write(chunks, f"{prefix}{SEPARATOR}{name}", data)
    held.copy.commit(chunks, asdict(held.progress))
    _cache[slot.key] = held


def _saved(held: Held, programs: Programs) -> Iterator[tuple[str, Saved]]:
    """What changed, each part under its own name."""
    for label, state in held.states.items():
        yield label, save(programs.routes[label][1], state)
    for label, states in held.operators.items():
        for operator, own in zip(programs.chains[label].operators, states, strict=True):
            yield operator_name(label, operator), operator_segments.save(operator, own)
    tables = {name: to_bytes(table) for name, table in held.pending.items() if table.num_rows}
    gone = held.saved_pending - tables.keys()
    held.saved_pending = frozenset(tables)
    if gone or tables:
        yield _PENDING, Saved(tables, gone)


def operator_name(label: str, operator: Operator) -> str:
    """Where the state of an operator is kept. One of another shape is kept elsewhere: it begins anew."""
    return f"{label} {'+'.join(query.name for query in operator.queries)} {crc32(operator.shape.encode()):08x}"


def begin_held(programs: Programs, since: int = BEGINNING) -> Held:
    """The state of a shard that has seen nothing."""
    return Held(
        Progress(),
        {label: _state(graph, {}, since) for label, (_, graph) in programs.routes.items()},
        {label: begin_chain(chain) for label, chain in programs.chains.items()},
    )


def _load(copy: Copy, chunks: Chunks, programs: Programs, since: int | None) -> Held:
    segments: dict[str, dict[str, bytes]] = {}
    for name, data in copy.segments().items():
        prefix, _, segment = name.partition(SEPARATOR)
        segments.setdefault(prefix, {})[segment] = data
    progress = Progress(**copy.facts)
    since = progress.watermark if since is None else since
    known = {_PENDING, *programs.routes}
    known |= {operator_name(label, one) for label, chain in programs.chains.items() for one in chain.operators}
    for prefix in segments.keys() - known:
        for segment in segments[prefix]:
            copy.remove(chunks, f"{prefix}{SEPARATOR}{segment}")
    pending = {name: to_table(data) for name, data in segments.get(_PENDING, {}).items()}
    return Held(
        progress=progress,
        states={label: _state(graph, segments.get(label, {}), since) for label, (_, graph) in programs.routes.items()},
        operators={
            label: tuple(_operator_states(label, chain, segments, since)) for label, chain in programs.chains.items()
        },
        pending=pending,
        saved_pending=frozenset(pending),
        copy=copy,
    )


def _state(graph: Graph, segments: Mapping[str, bytes], since: int) -> State:
    """The state of a route; that of a new one begins with the watermark, not with what was before it."""
    state, _ = load(graph, segments)
    state.watermark = max(state.watermark, since) if not segments else state.watermark
    return state


def _operator_states(
    label: str, chain: Chain, segments: Mapping[str, Mapping[str, bytes]], since: int
) -> Iterator[OperatorState]:
    """The states of a feed's operators; those that begin anew get the rows that wait."""
    before = [segments[name] for name in sorted(segments) if name.startswith(f"{label} ")]
    computed = {query.name for operator in chain.operators for query in operator.queries}
    for operator in chain.operators:
        own = segments.get(operator_name(label, operator))
        if own is not None:
            yield operator_segments.load(operator, own)
        else:
            # What other operators give may lie behind.
            begun = BEGINNING if operator.queries[0].source in computed else since
            yield operator_segments.succeed(operator, before, begun)


def forget(run: str) -> None:
    """Drop what the worker keeps of other runs."""
    for key in [key for key in _cache if key[0] != run]:
        del _cache[key]
