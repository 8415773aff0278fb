"""The event generator, last operator of every branch: rows that raise an event, packed by route and shard, and marks.

It runs on Arrow batches in Spark's workers, and in process where there is no Spark.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from estream.event.graph import Graph
from estream.plan.model import Leaf
from estream.stream.emission import REFUSED, TIME, Emission, Fed, Publication
from estream.stream.feed import Feed
from estream.stream.layout import ROWS, Route
from estream.stream.occurrence import microseconds, occurrences
from estream.stream.pack import FIRST, Packed, to_batch, to_bytes
from estream.stream.shard import shards_of, spark_keys, spread

GATHERED = 1 << 17
"""So many rows are looked at together, or the calls for a small batch take longer than its rows."""
MOST_ROWS = 1 << 20
"""So many rows are gathered before they are packed."""


@dataclass(frozen=True, slots=True)
class Generator:
    """What one branch gives, as it goes to the workers."""

    source: str | None
    emissions: tuple[Emission, ...]
    fed: tuple[Fed, ...]
    routes: tuple[Route, ...]
    shards: int
    piece: int | None = None
    """Of a bounded input: rows are packed by time, so many together, so that a host needs only few at a time."""
    published: tuple[Publication, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Packed rows of one partition's Arrow batches: what `mapInArrow` asks for."""
        work = _Work(self)
        for batch in gathered(batches):
            work.take(batch)
            if work.rows >= MOST_ROWS:
                yield to_batch(work.packed())
        yield to_batch([*work.packed(), *work.told()])


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= GATHERED:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


@dataclass(slots=True)
class _Work:
    """What was gathered of one partition."""

    generator: Generator
    rows: int = 0
    gathered: dict[tuple[int, str], list[pa.Table]] = field(default_factory=dict)
    fed: dict[tuple[int, Feed], list[pa.Table]] = field(default_factory=dict)
    published: dict[str, list[pa.Table]] = field(default_factory=dict)
    dead: list[pa.Table] = field(default_factory=list)
    least: int | None = None
    greatest: int | None = None
    seen: int = 0
    raised: Counter[str] = field(default_factory=Counter)
    graphs: dict[str, Graph] = field(default_factory=dict)

    def take(self, batch: pa.RecordBatch) -> None:
        """Take one Arrow batch in."""
        self.seen += batch.num_rows
        if self.generator.source is not None:
            self._mark(batch)
        for emission in self.generator.emissions:
            chosen = batch.filter(batch.column(emission.mask))
            if chosen.num_rows:
                self.raised[emission.leaf.name] += chosen.num_rows
                columns = {name: chosen.column(column) for name, column in emission.columns.items()}
                self._send(emission.leaf, columns)
        for fed in self.generator.fed:
            self._feed(fed, batch.filter(batch.column(fed.mask)))
        for one in self.generator.published:
            self._publish(one, batch.filter(batch.column(one.mask)))

    def _feed(self, fed: Fed, chosen: pa.RecordBatch) -> None:
        """Rows for an operator, by the shards of its key."""
        table = pa.table({name: chosen.column(column) for name, column in fed.columns.items()})
        self.rows += table.num_rows
        home = crc32(fed.feed.label.encode()) % self.generator.shards
        for shard, part in by_key(table, fed.feed.key, self.generator.shards, home):
            self.fed.setdefault((shard, fed.feed), []).append(part)

    def _publish(self, publication: Publication, chosen: pa.RecordBatch) -> None:
        table = pa.table({name: chosen.column(column) for name, column in publication.columns.items()})
        self.rows += table.num_rows
        if table.num_rows:
            self.published.setdefault(publication.query, []).append(table)

    def _mark(self, batch: pa.RecordBatch) -> None:
        """Times before any condition; a refused row must not move the watermark."""
        refused = batch.column(REFUSED)
        if refused.null_count < batch.num_rows:
            self.dead.append(pa.table([refused.drop_null()], names=[REFUSED]))
            batch = batch.filter(refused.is_null())
        span = pc.min_max(batch.column(TIME)).as_py()
        if span["min"] is not None:
            self.least = span["min"] if self.least is None else min(self.least, span["min"])
            self.greatest = span["max"] if self.greatest is None else max(self.greatest, span["max"])

    def _send(self, leaf: Leaf, columns: Mapping[str, Any]) -> None:
        for route in self.generator.routes:
            if leaf.name not in route.keys:
                continue
            table = occurrences(self._graph(route), leaf, columns)
            self.rows += table.num_rows
            for shard, part in split(route, leaf, table, columns, self.generator.shards):
                self.gathered.setdefault((shard, route.label), []).append(part)

    def _graph(self, route: Route) -> Graph:
        if route.label not in self.graphs:
            self.graphs[route.label] = route.graph()
        return self.graphs[route.label]

    def packed(self) -> list[Packed]:
        """The rows gathered so far; they are given away."""
        keys = spark_keys(self.generator.shards)
        made = [
            Packed(keys[shard], "rows", label, to_bytes(part), _least(part, "time"))
            for (shard, label), tables in self.gathered.items()
            for part in pieces(pa.concat_tables(tables).combine_chunks(), "time", self.generator.piece)
        ]
        made += [
            Packed(keys[shard], "feed", feed.label, to_bytes(part), _least(part, feed.time))
            for (shard, feed), tables in self.fed.items()
            for part in pieces(pa.concat_tables(tables).combine_chunks(), feed.time, self.generator.piece)
        ]
        made += [
            Packed(keys[0], "published", query, to_bytes(pa.concat_tables(tables)))
            for query, tables in self.published.items()
        ]
        self.gathered, self.fed, self.published, self.rows = {}, {}, {}, 0
        return made

    def told(self) -> list[Packed]:
        """What every shard must know of the partition, and what was refused."""
        source, keys = self.generator.source, spark_keys(self.generator.shards)
        facts = {"rows": self.seen, "raised": dict(self.raised), "least": self.least, "greatest": self.greatest}
        kind: Any = "alive" if source is None else "mark"
        made = [Packed(key, kind, source or "", json.dumps(facts).encode()) for key in keys]
        if self.dead:
            made.append(Packed(keys[0], "dead", source or "", to_bytes(pa.concat_tables(self.dead))))
        return made


def _least(table: pa.Table, time: str) -> int:
    least = pc.min(microseconds(table.column(time))).as_py()
    return FIRST if least is None else int(least)


def pieces(table: pa.Table, time: str, size: int | None) -> Iterator[pa.Table]:
    """The rows as they are, or by time in pieces of this size."""
    if size is None:
        yield table
        return
    table = table.sort_by(time)
    yield from (table.slice(first, size) for first in range(0, table.num_rows, size))


def split(
    route: Route, leaf: Leaf, table: pa.Table, columns: Mapping[str, Any], shards: int
) -> Iterator[tuple[int, pa.Table]]:
    """The occurrences of an event by the shard of the route they belong to."""
    key, home = route.keys[leaf.name], route.home(shards)
    if route.name == ROWS and shards > 1:
        hashes = np.asarray(table.column("id").to_numpy()) * np.int64(-7046029254386353131)
        yield from by_number(table, spread(hashes, shards), shards)
    else:
        keyed = pa.table([columns[name] for name in key], names=list(key))
        yield from by_key(table, key, shards, home, keyed)


def by_key(
    table: pa.Table, key: Sequence[str], shards: int, home: int, keyed: pa.Table | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """Rows by the shard of their key, which stands in `keyed` if not in the rows; without a key all are at home."""
    if not table.num_rows:
        return
    if shards == 1 or not key:
        yield home, table
    else:
        yield from by_number(table, shards_of(table if keyed is None else keyed, key, shards), shards)


def by_number(table: pa.Table, numbers: npt.NDArray[np.int64], shards: int) -> Iterator[tuple[int, pa.Table]]:
    """Rows by the number of their shard."""
    for shard in range(shards):
        part = table.filter(pa.array(numbers == shard))
        if part.num_rows:
            yield shard, part


def clock_generator(shards: int) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What the clock's branch runs: the time for every shard."""
    keys = spark_keys(shards)

    def tell(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for now in batch.column("now").to_pylist():
                yield to_batch(Packed(key, "clock", "", str(now).encode()) for key in keys)

    return tell
