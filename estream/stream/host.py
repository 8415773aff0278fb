"""Detection inside Spark: the state operator of a shard, which steps the graphs of its routes once per micro-batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from estream.event.detect import Step, step
from estream.event.graph import Graph
from estream.event.rows import batch_schema
from estream.stream.host_state import Held, Slot, fetch, forget, keep
from estream.stream.layout import RELAY, Route
from estream.stream.pack import Packed, from_columns, to_bytes, to_frame, to_table
from estream.stream.relay import relay
from estream.stream.shard import spark_keys
from estream.stream.watermark import Mark, Progress, Timing, advance

Routes = Mapping[str, tuple[Route, Graph]]

_KEY = StructType([StructField("name", StringType())])
_VALUE = StructType([StructField("value", BinaryType())])
_graphs: dict[str, Routes] = {}
"""The graphs of this worker, by run: they are made once."""


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
    timings: Mapping[str, Timing]
    shards: int
    is_held: bool
    """Whether Spark's watermark counts: some branch comes out behind it."""

    def graphs(self) -> Routes:
        """The routes with their graphs."""
        key = f"{self.run}/{self.stage}"
        if key not in _graphs:
            _graphs.clear()
            _graphs[key] = {route.label: (route, route.graph()) for route in self.routes}
        return _graphs[key]


@dataclass(slots=True)
class Inbox:
    """What came to a shard in one micro-batch."""

    rows: dict[str, list[pa.Table]] = field(default_factory=dict)
    relayed: dict[tuple[str, str], list[pa.Table]] = field(default_factory=dict)
    """By route and signature."""
    marks: list[Mark] = field(default_factory=list)
    told: list[Packed] = field(default_factory=list)
    clock: int | None = None
    reached: dict[str, Any] | None = None
    passing: list[Packed] = field(default_factory=list)
    """What is not for this stage."""

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
            label, _, signature = row.name.rpartition(" ")
            self.relayed.setdefault((label, signature), []).append(to_table(row.payload))
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
        if hosted.stage and not hosted.routes:
            yield to_frame(inbox.passing)
            return
        slot, routes = Slot(hosted.run, hosted.stage, shard), hosted.graphs()
        forget(hosted.run)
        held = fetch(slot, self.chunks, routes)
        watermark = timerValues.getCurrentWatermarkInMs() * 1000 if hosted.is_held else None
        out = run_batch(hosted, held, inbox, watermark, shard)
        keep(slot, self.chunks, held, routes)
        yield to_frame(out)

    def close(self) -> None:
        """Nothing is open."""


def run_batch(
    hosted: Hosted, held: Held, inbox: Inbox, spark_watermark: int | None, shard: int, end: int | None = None
) -> list[Packed]:
    """Step every route of a shard, and give what goes on.

    `end` is T at the end of a bounded input: the greatest time of a row.
    """
    if inbox.reached is None:
        held.progress = advance(held.progress, hosted.timings, inbox.marks, inbox.clock, spark_watermark)
    else:
        held.progress = Progress(**inbox.reached)
    out = list(inbox.passing)
    for label, (route, graph) in hosted.graphs().items():
        found = step(
            graph,
            held.states[label],
            _joined(inbox.rows.get(label, []), graph),
            held.progress.watermark if end is None else end,
            end is not None,
            first=held.progress.first,
            relayed={node: _relayed(inbox, label, signature) for signature, (node, _) in route.relays.items()},
        )
        out += _packed(found, label, shard)
        for following in hosted.following:
            out += relay(found.detections, following, graph, hosted.shards)
    if hosted.stage == 0:
        out += _told(held.progress, inbox, shard, hosted.shards)
    return out


def _relayed(inbox: Inbox, label: str, signature: str) -> pa.Table:
    tables = inbox.relayed.get((label, signature))
    return pa.concat_tables(tables).combine_chunks() if tables else pa.table({})


def _joined(tables: list[pa.Table], graph: Graph) -> pa.Table:
    if not tables:
        return batch_schema(graph).empty_table()
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()


def own_detections(detections: pa.Table) -> pa.Table:
    """Without those that are only there to be relayed."""
    if not detections.num_rows:
        return detections
    return detections.filter(pc.invert(pc.starts_with(detections.column("event").cast(pa.string()), RELAY)))


def _packed(found: Step, label: str, shard: int) -> Iterator[Packed]:
    own = own_detections(found.detections)
    if own.num_rows:
        yield Packed(shard, "detections", label, to_bytes(own))
    if found.late.num_rows:
        yield Packed(shard, "late", label, to_bytes(found.late))


def _told(progress: Progress, inbox: Inbox, shard: int, shards: int) -> Iterator[Packed]:
    """The progress for the second stage; the first shard also tells it to the world."""
    facts = {name: getattr(progress, name) for name in Progress.__slots__}
    yield Packed(shard, "reached", "", json.dumps(facts).encode())
    if shard == spark_keys(shards)[0]:
        yield Packed(shard, "status", "progress", json.dumps(facts).encode())
        yield from (Packed(shard, "status", row.name, row.payload) for row in inbox.told)
