"""From segments to state, for a graph that may have changed since they were written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estream.errors import EStreamError
from estream.event.columns import one_chunk
from estream.event.graph import Graph
from estream.event.memory import Words
from estream.event.pattern_segments import load_partials
from estream.event.rows import batch_schema, key_kinds
from estream.event.segment_format import Facts, decode_arrays, decode_table
from estream.event.segment_lists import find_due, items_in
from estream.event.segment_write import is_stateful
from estream.event.state import Partitions, State, begin
from estream.event.words import FOREVER, ITEM_WORDS, ITEMS, LAST_TICK, NONE, PARTS, POOL
from estream.plan.model import Node


@dataclass(frozen=True, slots=True)
class Report:
    """What became of saved state: the expressions of nodes that go on, that are gone, and that begin with nothing."""

    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    new: tuple[str, ...]

    def __str__(self) -> str:
        """One line for people."""
        gone = f"; dropped what waited at {', '.join(self.dropped)}" if self.dropped else ""
        begun = f"; began {', '.join(self.new)}" if self.new else ""
        return f"kept the state of {len(self.kept)} of {len(self.kept) + len(self.dropped)} nodes{gone}{begun}"


class Reading:
    """One load."""

    def __init__(self, graph: Graph, segments: Mapping[str, bytes]) -> None:
        self.graph, self.segments = graph, segments
        if "meta" not in segments:
            raise EStreamError("the state has no segment 'meta': a part of it is lost, or it is not EStream's")
        _, self.meta = decode_arrays("meta", segments["meta"])
        lost = [name for name in self.meta["segments"] if name not in segments]
        if lost:
            raise EStreamError(f"the state has no segment '{lost[0]}', one of {len(lost)} that are lost")
        self.state = begin(graph)
        self._codes = self._texts()
        self._refused: set[str] = set()

    def all(self) -> tuple[State, Report]:
        """The state, and what became of each node."""
        state, meta, ledger = self.state, self.meta, self.state.ledger
        state.watermark, state.first, state.greatest = meta["watermark"], meta["first"], meta["greatest"]
        state.counts = Counter(meta["counts"])
        ledger.next_serial, ledger.next_chunk = meta["next_serial"], meta["next_chunk"]
        serials = self._rows()
        state.waiting = self._waiting()
        state.rows.expose(state.memory)
        self._nodes(serials)
        self._patterns()
        self._timers()
        kept = self._kept()
        for name in self.meta["segments"]:
            if name.startswith("rows/"):
                ledger.wrote(name)
            else:
                ledger.is_new(name, self.segments[name])
            if name.startswith(("node/", "pattern/")) and name.split("/")[1] not in kept:
                ledger.stale.append(name)
        return state, self._report()

    def _named(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        names = [name for name in self.meta["segments"] if name.startswith(prefix)]
        for name in sorted(names, key=lambda name: int(name.rsplit("/", 1)[1])):
            yield name, self.segments[name]

    def _texts(self) -> Words:
        """The code that each saved text has now."""
        code = self.state.texts.code
        pieces = (decode_table(name, data)[0].column("text").to_pylist() for name, data in self._named("texts/"))
        return np.array([code(text) for piece in pieces for text in piece], dtype=np.int64)

    def _rows(self) -> Words:
        """Put the rows in; gives the row number behind each serial number."""
        pieces = []
        for name, data in self._named("rows/"):
            table = decode_table(name, data)[0]
            self.state.ledger.chunks[int(name.split("/")[1])] = table.column("serial").to_numpy()
            pieces.append(self._fitted(table, "serial"))
        numbers = np.full(self.meta["next_serial"] + 1, NONE, dtype=np.int64)
        if pieces:
            rows = pa.concat_tables(pieces).combine_chunks()
            serials = one_chunk(rows.column("serial")).to_numpy()
            event, time, ids = (one_chunk(rows.column(place)).to_numpy() for place in range(3))
            self.state.rows.append(event, time, ids, rows.select(range(3, rows.num_columns - 1)))
            self.state.rows.serial[:] = serials
            numbers[serials] = np.arange(len(serials))
        return numbers

    def _fitted(self, table: pa.Table, *more: str) -> pa.Table:
        """Rows of events that the graph still has, with its columns; a column that was not kept is null."""
        names = one_chunk(table.column("event"))
        known = {name: code for code, name in enumerate(self.graph.events)}
        codes = pa.array([known.get(name) for name in names.dictionary.to_pylist()], pa.int64()).take(names.indices)
        schema = batch_schema(self.graph)
        columns: list[Any] = [codes, table.column("time"), table.column("id")]
        for column, field in zip(self.graph.columns, list(schema)[3:], strict=True):
            stored = f"{column.name}:{column.type}"
            there = stored in table.column_names
            columns.append(table.column(stored) if there else pa.nulls(table.num_rows, field.type))
        for name in more:
            columns.append(table.column(name))
            schema = schema.append(table.schema.field(name))
        fitted = pa.table(columns, schema=schema)
        return fitted if codes.null_count == 0 else fitted.filter(pc.is_valid(fitted.column("event")))

    def _waiting(self) -> pa.Table:
        pieces = [self._fitted(decode_table(name, data)[0]) for name, data in self._named("waiting/")]
        return pa.concat_tables(pieces).combine_chunks() if pieces else batch_schema(self.graph).empty_table()

    def _nodes(self, serials: Words) -> None:
        partitions = {one.group.number: one for one in self.state.partitions}
        found = [
            (node, partitions[node.group], *decode_arrays(name, data))
            for node in self.graph.nodes
            for name, data in self._named(f"node/{node.signature}/")
        ]
        self._refused = {node.signature for node, home, _, facts in found if not self._fits(home, facts)}
        kept = [one for one in found if one[0].signature not in self._refused]
        placed = [(node, home, *self._place(home, arrays, facts)) for node, home, arrays, facts in kept]
        occurrences = self._occurrences([arrays for _, _, arrays, _ in kept], serials)
        buckets = Counter(node.signature for node, *_ in kept)
        memory = self.state.memory
        memory.allot(ITEMS, max(1024, ITEM_WORDS * sum(map(len, occurrences)) * 3 // 2))
        for home in self.state.partitions:
            home.extend()
        for (node, home, numbers, counts, skipped), items in zip(placed, occurrences, strict=True):
            home.bear(numbers)
            home.written = max(home.written, buckets[node.signature])
            slot = self.graph.slot_of[node.number]
            items_in(memory.address, home.lists, numbers, slot, counts, items[skipped:])

    def _patterns(self) -> None:
        for pattern in self.state.patterns:
            prefix = f"pattern/{pattern.signature}/"
            names = [name for name in self.meta["segments"] if name.startswith(prefix)]
            if not names:
                continue
            partials = load_partials(
                pattern.matcher, {name.removeprefix(prefix): self.segments[name] for name in names}
            )
            if partials is None:
                self._refused.add(pattern.signature)
            else:
                pattern.partials = partials

    def _fits(self, partitions: Partitions, facts: Facts) -> bool:
        """Whether the words of keys still mean the same."""
        return bool(facts["kinds"] == key_kinds(self.graph, partitions.group))

    def _place(self, partitions: Partitions, arrays: dict[str, Words], facts: Facts) -> tuple[Words, Words, int]:
        """The partitions' numbers now, how many wait in each list, and how many items at the front have no place."""
        attributes = partitions.group.key_length
        counts = arrays["counts"].copy()
        first = 1 if facts["unborn"] else 0
        if attributes == 0:
            return np.zeros(1, dtype=np.int64), counts.reshape(1, -1), 0
        words = arrays["keys"].reshape(-1, attributes)
        counts = counts.reshape(len(words) + first, -1)
        columns = [
            self._codes[words[:, position]] if kind == "text" else np.ascontiguousarray(words[:, position])
            for position, kind in enumerate(facts["kinds"])
        ]
        numbers = partitions.keys.numbers(columns, None, len(words))
        if first and partitions.keys.first:
            return np.concatenate([np.zeros(1, dtype=np.int64), numbers]), counts, 0
        return numbers, np.ascontiguousarray(counts[first:]), int(counts[:first].sum())

    def _occurrences(self, segments: list[dict[str, Words]], serials: Words) -> list[Words]:
        """Put the composites of all segments into the pool; gives the items of each as the kernel numbers them."""
        pools, parts, found = [], [], []
        composites = places = 0
        for arrays in segments:
            spans, rows, items = arrays["composites"].reshape(-1, 3), serials[arrays["parts"]], arrays["items"]
            starts = places + np.cumsum(spans[:, 2]) - spans[:, 2]
            marks = np.full(len(spans), NONE, dtype=np.int64)
            pools.append(np.column_stack([spans[:, 0], spans[:, 1], starts, spans[:, 2], marks]).reshape(-1))
            parts.append(rows)
            found.append(np.where(items >= 0, serials[np.maximum(items, 0)], items - composites))
            composites += len(spans)
            places += len(rows)
        if segments:
            self.state.memory.fill(POOL, np.concatenate(pools))
            self.state.memory.fill(PARTS, np.concatenate(parts))
        return found

    def _timers(self) -> None:
        """Timers due before the watermark have acted."""
        memory = self.state.memory
        memory.header[LAST_TICK] = FOREVER
        for partitions in self.state.partitions:
            partitions.extend()
            partitions.expose(memory)
            if len(partitions.group.timers):
                find_due(memory.address, partitions.keys.count, self.state.watermark - 1)

    def _kept(self) -> set[str]:
        known = self.meta["nodes"].keys() - self._refused
        return {node.signature for node in self._stateful() if node.signature in known}

    def _stateful(self) -> list[Node]:
        return [node for node in self.graph.nodes if is_stateful(node)]

    def _report(self) -> Report:
        kept = self._kept()
        return Report(
            tuple(text for signature, text in self.meta["nodes"].items() if signature in kept),
            tuple(text for signature, text in self.meta["nodes"].items() if signature not in kept),
            tuple(node.text for node in self._stateful() if node.signature not in self.meta["nodes"]),
        )
