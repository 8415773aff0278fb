"""A plan over bounded input, as a batch job: windows are complete and nothing waits for a watermark.

Packed rows come to the host of a shard by their least time. So all rows before the least time of the next ones are
there, which is the watermark, and only few have to be in memory however long the history is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from estream.event.detect import step
from estream.event.graph import Graph
from estream.event.rows import batch_schema
from estream.event.state import State, begin
from estream.plan.model import Plan
from estream.spec.checked import Checked
from estream.stream.branch import branches
from estream.stream.generator import Generator
from estream.stream.host import own_detections
from estream.stream.layout import STAGES, Route, routes
from estream.stream.pack import FIRST, SCHEMA, Packed, from_columns, to_batch, to_bytes, to_table
from estream.stream.relay import relay
from estream.stream.sql_branch import Reader

PIECE = 65_536
"""Rows that are packed together."""


def replay_frame(plan: Plan, checked: Checked, reader: Reader, shards: int) -> DataFrame:
    """The frame of packed rows that detection over the inputs of the reader gives."""
    laid = routes(plan)
    parts = [
        branch.frame.mapInArrow(Generator(branch.source, branch.emissions, laid, shards, PIECE), SCHEMA)
        for branch in branches(plan, checked, reader, refuse_ahead=False)
    ]
    packed = reduce(DataFrame.union, parts)
    for stage in STAGES:
        own, following = (tuple(route for route in laid if route.stage == number) for number in (stage, stage + 1))
        if own or stage == 0:
            by_shard = packed.repartition(shards, "shard").sortWithinPartitions("shard", "least")
            packed = by_shard.mapInArrow(ReplayHost(stage, own, following, shards), SCHEMA)
    return packed


@dataclass(frozen=True, slots=True)
class ReplayHost:
    """A host stage over bounded input, as it goes to the workers."""

    stage: int
    routes: tuple[Route, ...]
    following: tuple[Route, ...]
    shards: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What `mapInArrow` asks for: packed rows in, by shard and least time; packed rows out."""
        rows = (row for batch in batches for row in from_columns(batch.to_pydict()))
        for shard, own in groupby(rows, key=lambda row: row.shard):
            for out in _Shard(self, shard).run(own):
                yield to_batch(out)


@dataclass(slots=True)
class _Shard:
    """One shard's way through time."""

    host: ReplayHost
    shard: int
    first: int | None = None
    last: int | None = None
    graphs: dict[str, tuple[Route, Graph, State]] = field(default_factory=dict)
    rows: dict[str, list[pa.Table]] = field(default_factory=dict)
    relayed: dict[tuple[str, str], pa.Table] = field(default_factory=dict)
    held: int = 0

    def run(self, packed: Iterator[Packed]) -> Iterator[list[Packed]]:
        for route in self.host.routes:
            graph = route.graph()
            self.graphs[route.label] = (route, graph, begin(graph))
        for row in packed:
            if self._is_own(row):
                if self.held >= PIECE:
                    yield list(self._step(row.least, False))
                self._take(row)
            elif row.kind == "mark":
                self._learn(json.loads(row.payload))
                yield [row] if self.host.stage == 0 and self.host.following else []
            else:
                yield [row]
        yield list(self._step(self.last if self.last is not None else FIRST, True))

    def _is_own(self, row: Packed) -> bool:
        return row.kind in ("rows", "relayed") and row.name.startswith(f"{self.host.stage}:")

    def _learn(self, facts: dict[str, int | None]) -> None:
        """The first and last time of the run, which come before all rows."""
        least, greatest = facts["least"], facts["greatest"]
        if least is not None and greatest is not None:
            self.first = least if self.first is None else min(self.first, least)
            self.last = greatest if self.last is None else max(self.last, greatest)

    def _take(self, row: Packed) -> None:
        table = to_table(row.payload)
        self.held += table.num_rows
        if row.kind == "rows":
            self.rows.setdefault(row.name, []).append(table)
        else:
            label, _, signature = row.name.rpartition(" ")
            before = self.relayed.get((label, signature))
            self.relayed[label, signature] = table if before is None else pa.concat_tables([before, table])

    def _step(self, watermark: int, is_end: bool) -> Iterator[Packed]:
        for label, (route, graph, state) in self.graphs.items():
            tables = self.rows.pop(label, [])
            batch = pa.concat_tables(tables).combine_chunks() if tables else batch_schema(graph).empty_table()
            relayed = {
                node: self._due(label, signature, None if is_end else watermark)
                for signature, (node, _) in route.relays.items()
            }
            found = step(graph, state, batch, watermark, is_end, first=self.first, relayed=relayed).detections
            own = own_detections(found)
            if own.num_rows:
                yield Packed(self.shard, "detections", label, to_bytes(own))
            for following in self.host.following:
                yield from relay(found, following, graph, self.host.shards)
        self.held = sum(table.num_rows for table in self.relayed.values())

    def _due(self, label: str, signature: str, watermark: int | None) -> pa.Table:
        """What is relayed and has ended before the watermark."""
        waiting = self.relayed.pop((label, signature), None)
        if waiting is None:
            return pa.table({})
        waiting = waiting.combine_chunks()
        if watermark is None:
            return waiting
        ready = pc.less(waiting.column("end"), watermark)
        self.relayed[label, signature] = waiting.filter(pc.invert(ready))
        return waiting.filter(ready)
