"""Detection inside Spark: the state operator of a shard, which steps the graphs of its routes once per micro-batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from estream.event.detect import Step, step
from estream.event.graph import Graph
from estream.event.operator_chain import step_chain
from estream.event.rows import batch_schema
from estream.stream.compute import raised
from estream.stream.feed import Feed
from estream.stream.host_state import Held, Programs, Slot, fetch, forget, keep
from estream.stream.late import late_rows, split_late
from estream.stream.layout import RELAY, Route
from estream.stream.pack import Packed, from_columns, to_bytes, to_frame, to_table
from estream.stream.relay import relay
from estream.stream.shard import spark_keys
from estream.stream.watermark import BEGINNING, Mark, Progress, Timing, advance

_KEY = StructType([StructField("name", StringType())])
_VALUE = StructType([StructField("value", BinaryType())])
_programs: dict[str, Programs] = {}
"""Those of this worker, by run and stage: they are made once."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """What a host runs, as it goes to the workers."""

    run: str
    """Another one for every start of a query: what a worker keeps belongs to one start."""
    stage: int
    routes: tuple[Route, ...]
    """Those of this stage."""
    following: tuple[Route, ...]
    """Those of the next stage, to which occurrences are relayed."""
    feeds: tuple[Feed, ...]
    """What this stage computes for the next one."""
    timings: Mapping[str, Timing]
    shards: int
    is_held: bool
    """Whether Spark's watermark counts: some branch comes out behind it."""
    direct: frozenset[str] = frozenset()
    """Events and feeds whose rows come straight from streams, whose watermark alone says which of them are late."""

    @property
    def is_needed(self) -> bool:
        """Whether the stage does more than hand on."""
        return self.stage == 0 or bool(self.routes)

    def programs(self) -> Programs:
        """Routes with their graphs, feeds with their operators."""
        key = f"{self.run}/{self.stage}"
        if key not in _programs:
            for old in [old for old in _programs if not old.startswith(self.run)]:
                del _programs[old]
            _programs[key] = Programs(_graphs(self.routes), {feed.label: feed.chain() for feed in self.feeds})
        return _programs[key]

    def next_graphs(self) -> Mapping[str, tuple[Route, Graph]]:
        """The routes of the next stage with their graphs, which rows of feeds are made for."""
        key = f"{self.run}/{self.stage}>"
        if key not in _programs:
            _programs[key] = Programs(_graphs(self.following), {})
        return _programs[key].routes

    def behind(self) -> int:
        """How far the next stage stays behind: what feeds give may be so much older than the watermark."""
        return max((feed.behind() for feed in self.feeds), default=0)


def _graphs(routes: Iterable[Route]) -> dict[str, tuple[Route, Graph]]:
    return {route.label: (route, route.graph()) for route in routes}


@dataclass(slots=True)
class Inbox:
    """What came to a shard in one micro-batch."""

    rows: dict[str, list[pa.Table]] = field(default_factory=dict)
    fed: dict[str, list[pa.Table]] = field(default_factory=dict)
    """By feed."""
    relayed: dict[str, list[pa.Table]] = field(default_factory=dict)
    """By route and signature."""
    marks: list[Mark] = field(default_factory=list)
    told: list[Packed] = field(default_factory=list)
    clock: int | None = None
    reached: dict[str, Any] | None = None
    passing: list[Packed] = field(default_factory=list)
    """What is not for this stage."""

    @property
    def since(self) -> int | None:
        """Where the second stage was before this micro-batch, also where it had nothing to do; None in the first."""
        return None if self.reached is None else int(self.reached["since"])

    @classmethod
    def of(cls, packed: Iterable[Packed], stage: int) -> Inbox:
        """Sorted by what it is."""
        inbox = cls()
        for row in packed:
            inbox.put(row, stage)
        return inbox

    def put(self, row: Packed, stage: int) -> None:
        """Take one packed row."""
        if row.kind == "rows" and row.name.startswith(f"{stage}:"):
            self.rows.setdefault(row.name, []).append(to_table(row.payload))
        elif row.kind == "relayed" and row.name.startswith(f"{stage}:"):
            self.relayed.setdefault(row.name, []).append(to_table(row.payload))
        elif row.kind == "feed":
            self.fed.setdefault(row.name, []).append(to_table(row.payload))
        elif row.kind == "clock":
            self.clock = max(int(row.payload), self.clock or 0)
        elif row.kind in ("mark", "alive"):
            self.told.append(row)
            facts = json.loads(row.payload)
            if facts["greatest"] is not None:
                self.marks.append(Mark(row.name, facts["least"], facts["greatest"], facts["rows"]))
        elif row.kind == "reached":
            self.reached = json.loads(row.payload)
        else:
            self.passing.append(row)


class Host(StatefulProcessor):
    """A host stage of Spark."""

    def __init__(self, hosted: Hosted) -> None:
        self.hosted = hosted

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state. Nothing else: this also runs on the driver."""
        self.chunks = handle.getMapState("chunks", _KEY, _VALUE)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """One micro-batch of one shard."""
        hosted = self.hosted
        inbox = Inbox.of((row for frame in rows for row in from_columns(frame)), hosted.stage)
        shard = int(key[0])
        if not hosted.is_needed:
            yield to_frame(inbox.passing)
            return
        slot, programs = Slot(hosted.run, hosted.stage, shard), hosted.programs()
        forget(hosted.run)
        held = fetch(slot, self.chunks, programs, inbox.since)
        watermark = timerValues.getCurrentWatermarkInMs() * 1000 if hosted.is_held else None
        out = run_batch(hosted, held, inbox, watermark, shard)
        keep(slot, self.chunks, held, programs)
        yield to_frame(out)

    def close(self) -> None:
        """Nothing is open."""


def run_batch(
    hosted: Hosted, held: Held, inbox: Inbox, spark_watermark: int | None, shard: int, end: int | None = None
) -> list[Packed]:
    """Step every route of a shard, and give what goes on.

    `end` is T at the end of a bounded input: the greatest time of a row.
    """
    # What Spark or operators hold back must not make a late row one in time.
    since = held.progress.free if held.progress.free > held.progress.watermark else BEGINNING
    if inbox.reached is None:
        held.progress = advance(held.progress, hosted.timings, inbox.marks, inbox.clock, spark_watermark)
    else:
        held.progress = Progress(**inbox.reached)
    out = list(inbox.passing)
    for label, (route, graph) in hosted.programs().routes.items():
        rows, late = _in_time(hosted, graph, _joined(inbox.rows.get(label, []), batch_schema(graph)), since)
        found = step(
            graph,
            held.states[label],
            rows,
            held.progress.watermark if end is None else end,
            end is not None,
            first=held.progress.first,
            relayed=_due(held, inbox, route, end is not None),
        )
        out += _packed(found, late, label, graph, shard)
        for following in hosted.following:
            out += relay(found.detections, following, graph, hosted.shards)
    for feed in hosted.feeds:
        out += _computed(hosted, held, feed, inbox.fed.get(feed.label, []), since, shard, end)
    if hosted.stage == 0:
        out += _told(held.progress, inbox, shard, hosted)
    return out


def _in_time(hosted: Hosted, graph: Graph, rows: pa.Table, since: int) -> tuple[pa.Table, pa.Table]:
    """The rows of a route but those that are late by the watermark of the streams, and these."""
    if since == BEGINNING or graph.arrival or not rows.num_rows:
        return rows, rows.slice(0, 0)
    return split_late(rows, "time", since, [code for code, name in enumerate(graph.events) if name in hosted.direct])


def _due(held: Held, inbox: Inbox, route: Route, is_end: bool) -> dict[int, pa.Table]:
    """What is relayed to a route and has ended before the watermark; the rest is kept."""
    due: dict[int, pa.Table] = {}
    for signature, (node, _) in route.relays.items():
        name = f"{route.label} {signature}"
        tables = inbox.relayed.get(name, []) + ([held.pending.pop(name)] if name in held.pending else [])
        if tables:
            whole = pa.concat_tables(tables).combine_chunks()
            ready = pc.less(whole.column("end"), held.progress.watermark)
            due[node] = whole if is_end else whole.filter(ready)
            if due[node].num_rows < whole.num_rows:
                held.pending[name] = whole.filter(pc.invert(ready))
    return due


def _computed(
    hosted: Hosted, held: Held, feed: Feed, tables: list[pa.Table], since: int, shard: int, end: int | None
) -> Iterator[Packed]:
    """What the operators of a feed give, as rows for the next stage."""
    chain, states = hosted.programs().chains[feed.label], held.operators[feed.label]
    first = next(one for one in chain.operators if one.queries[0].source == feed.source)
    batch = _joined(tables, first.source)
    if since > BEGINNING and feed.label in hosted.direct and not feed.arrival:
        batch, late = split_late(batch, feed.time, since)
        yield from _late(late_rows(late, feed.time, first.queries[0].name), feed.label, shard)
    watermark = held.progress.watermark if end is None else end
    given = step_chain(chain, states, {feed.source: batch}, watermark, end is not None)
    yield from raised(given, hosted.next_graphs(), hosted.shards)
    for name in feed.published:
        if given[name].num_rows:
            yield Packed(shard, "published", name, to_bytes(given[name]))
    for operator, state in zip(chain.operators, states, strict=True):
        query = operator.queries[0]
        yield from _late(late_rows(state.buffer.late, query.source_time, query.name), feed.label, shard)


def _joined(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    if not tables:
        return schema.empty_table()
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()


def own_detections(detections: pa.Table) -> pa.Table:
    """Without those that are only there to be relayed."""
    if not detections.num_rows:
        return detections
    return detections.filter(pc.invert(pc.starts_with(detections.column("event").cast(pa.string()), RELAY)))


def _packed(found: Step, late: pa.Table, label: str, graph: Graph, shard: int) -> Iterator[Packed]:
    own = own_detections(found.detections)
    if own.num_rows:
        yield Packed(shard, "detections", label, to_bytes(own))
    for rows in (late, found.late):
        yield from _late(late_rows(rows, "time", graph.events), label, shard)


def _late(rows: pa.Table, label: str, shard: int) -> Iterator[Packed]:
    if rows.num_rows:
        yield Packed(shard, "late", label, to_bytes(rows))


def _told(progress: Progress, inbox: Inbox, shard: int, hosted: Hosted) -> Iterator[Packed]:
    """The progress for the second stage; the first shard also tells it to the world."""
    facts = asdict(progress)
    behind = hosted.behind()
    reached = {name: max(facts[name] - behind, BEGINNING) for name in ("watermark", "since")}
    yield Packed(shard, "reached", "", json.dumps(facts | reached).encode())
    if shard == spark_keys(hosted.shards)[0]:
        yield Packed(shard, "status", "progress", json.dumps(facts).encode())
        yield from (Packed(shard, "status", row.name, row.payload) for row in inbox.told)
