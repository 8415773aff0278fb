"""From state to segments."""

from __future__ import annotations

from itertools import count

import numpy as np
import pyarrow as pa

from estream.event.graph import Graph
from estream.event.ledger import CHUNK
from estream.event.pattern_segments import save_partials
from estream.event.rows import key_kinds
from estream.event.segment_format import Facts, Words, encode_arrays, encode_table
from estream.event.segment_lists import items_out, parts_of
from estream.event.state import BUCKET, Partitions, State
from estream.event.sweep import sweep
from estream.event.words import (
    ITEM_WORDS,
    ITEMS,
    OPERATORS,
    PARTS,
    POOL,
    POOL_COUNT,
    POOL_END,
    POOL_FIRST,
    POOL_START,
    POOL_WORDS,
    SLOTS_OF,
)
from estream.plan.model import Node


class Writing:
    """One save: collects the segments that changed."""

    def __init__(self, graph: Graph, state: State) -> None:
        self.graph, self.state, self.ledger = graph, state, state.ledger
        self.changed: dict[str, bytes] = {}
        self.removed: set[str] = set()
        self._fresh: list[Words] = []

    def all(self) -> None:
        """Every part; rows after the nodes, which say which rows are referred to."""
        if self.ledger.crowded:
            sweep(self.graph, self.state, now=True)
        for name in self.ledger.stale:
            self._drop(name)
        self.ledger.stale = []
        for partitions in self.state.partitions:
            self._group(partitions)
        self._patterns()
        self._rows()
        self._waiting()
        self._texts()
        self._put("meta", encode_arrays({}, self._meta()))
        self.removed -= self.changed.keys()

    def _put(self, name: str, data: bytes) -> None:
        if self.ledger.is_new(name, data):
            self.changed[name] = data

    def _drop(self, name: str) -> None:
        if self.ledger.digests.pop(name, None) is not None:
            self.removed.add(name)

    def _patterns(self) -> None:
        for pattern in self.state.patterns:
            pieces = save_partials(pattern.matcher, pattern.partials, self.state.watermark)
            for piece, data in pieces.items():
                self._put(f"pattern/{pattern.signature}/{piece}", data)

    def _group(self, partitions: Partitions) -> None:
        """The buckets of partitions in which something happened."""
        nodes = [node for node in self.graph.nodes if node.group == partitions.group.number and _width(node)]
        for bucket in np.flatnonzero(partitions.touched).tolist():
            for node in nodes:
                self._node(partitions, node, bucket)
        partitions.touched[:] = 0
        buckets = -(-partitions.keys.count // BUCKET)
        for bucket in range(buckets, partitions.written):
            for node in nodes:
                self._drop(f"node/{node.signature}/{bucket}")
        partitions.written = buckets

    def _node(self, partitions: Partitions, node: Node, bucket: int) -> None:
        """What waits at a node in the partitions of a bucket."""
        name = f"node/{node.signature}/{bucket}"
        numbers = np.arange(bucket * BUCKET, min((bucket + 1) * BUCKET, partitions.keys.count))
        slot, address = self.graph.slot_of[node.number], self.state.memory.address
        counts = np.empty((len(numbers), _width(node)), dtype=np.int64)
        room = np.empty(len(self.state.memory.used(ITEMS)) // ITEM_WORDS, dtype=np.int64)
        occurrences = room[: items_out(address, partitions.lists, numbers, slot, counts, room)]
        known = partitions.born(numbers) if partitions.group.temporals else counts.any(axis=1)
        numbers, counts = numbers[known], np.ascontiguousarray(counts[known])
        if not len(numbers):
            self._drop(name)
            return
        keyed = numbers >= partitions.keys.first if partitions.keys.tables else np.zeros(len(numbers), dtype=np.bool_)
        arrays = {"counts": counts, "keys": partitions.keys.words(numbers[keyed]), **self._occurrences(occurrences)}
        facts = {
            "unborn": bool(partitions.keys.first and numbers[0] == 0),
            "kinds": key_kinds(self.graph, partitions.group),
        }
        self._put(name, encode_arrays(arrays, facts))

    def _occurrences(self, occurrences: Words) -> dict[str, Words]:
        """Rows by serial number, composites by their place among those of the segment."""
        composites, places = np.unique(~occurrences[occurrences < 0], return_inverse=True)
        pool = self.state.memory.used(POOL).reshape(-1, POOL_WORDS)[composites]
        rows = np.empty(int(pool[:, POOL_COUNT].sum()), dtype=np.int64)
        parts_of(self.state.memory.used(PARTS), pool[:, POOL_FIRST].copy(), pool[:, POOL_COUNT].copy(), rows)
        items = occurrences.copy()
        items[occurrences >= 0] = self._serials(occurrences[occurrences >= 0])
        items[occurrences < 0] = ~places
        spans = np.ascontiguousarray(pool[:, [POOL_START, POOL_END, POOL_COUNT]])
        return {"items": items, "composites": spans, "parts": self._serials(rows)}

    def _serials(self, rows: Words) -> Words:
        """The serial numbers of rows; those that have none get one, and will be written."""
        serials = self.state.rows.serial
        fresh = rows[serials[rows] < 0]
        if len(fresh):
            marked = np.zeros(len(serials), dtype=np.bool_)
            marked[fresh] = True
            fresh = np.flatnonzero(marked)
            serials[fresh] = np.arange(self.ledger.next_serial, self.ledger.next_serial + len(fresh))
            self.ledger.next_serial += len(fresh)
            self._fresh.append(fresh)
        return np.asarray(serials[rows], dtype=np.int64)

    def _rows(self) -> None:
        """Fresh rows, and those of chunks that have become too empty or too many."""
        rows, ledger = self.state.rows, self.ledger
        if ledger.swept or ledger.crowded:
            live = rows.serial[rows.serial >= 0]
            sparse = ledger.sparse(live)
            moved = np.concatenate([ledger.chunks.pop(chunk) for chunk in sparse] or [live[:0]])
            for chunk in sparse:
                self._drop(f"rows/{chunk}")
            self._fresh.append(np.flatnonzero((rows.serial >= 0) & np.isin(rows.serial, moved)))
            ledger.swept = False
        written = np.concatenate(self._fresh) if self._fresh else np.empty(0, dtype=np.int64)
        for first in range(0, len(written), CHUNK):
            self._chunk(written[first : first + CHUNK])

    def _chunk(self, numbers: Words) -> None:
        rows, ledger = self.state.rows, self.ledger
        serials = rows.serial[numbers]
        table = self._named(rows.event[numbers], rows.time[numbers], rows.id[numbers], rows.table.take(numbers))
        name = f"rows/{ledger.next_chunk}"
        self.changed[name] = encode_table(table.append_column("serial", pa.array(serials)), {})
        ledger.wrote(name)
        ledger.chunks[ledger.next_chunk] = serials
        ledger.next_chunk += 1

    def _named(self, event: Words, time: Words, ids: Words, attributes: pa.Table) -> pa.Table:
        """Rows with event and columns by name, which outlive the graph."""
        names = pa.array(list(self.graph.events), pa.string())
        own = {
            "event": pa.DictionaryArray.from_arrays(pa.array(event.astype(np.int32)), names),
            "time": pa.array(time),
            "id": pa.array(ids),
        }
        named = zip(self.graph.columns, attributes.columns, strict=True)
        return pa.table({**own, **{f"{column.name}:{column.type}": values for column, values in named}})

    def _waiting(self) -> None:
        waiting = self.state.waiting
        for number in count():
            name = f"waiting/{number}"
            piece = waiting.slice(number * CHUNK, CHUNK)
            if piece.num_rows == 0:
                if name not in self.ledger.digests:
                    return
                self._drop(name)
                continue
            event, time, ids = (column.to_numpy() for column in piece.columns[:3])
            attributes = piece.select(range(3, piece.num_columns))
            self._put(name, encode_table(self._named(event, time, ids, attributes), {}))

    def _texts(self) -> None:
        values = self.state.texts.values
        for first in range(self.ledger.texts // CHUNK * CHUNK, len(values), CHUNK):
            piece = pa.table({"text": pa.array(values[first : first + CHUNK], pa.large_string())})
            self._put(f"texts/{first // CHUNK}", encode_table(piece, {}))
        number = -(-len(values) // CHUNK)
        while f"texts/{number}" in self.ledger.digests:
            self._drop(f"texts/{number}")
            number += 1
        self.ledger.texts = len(values)

    def _meta(self) -> Facts:
        state = self.state
        return {
            "watermark": state.watermark,
            "first": state.first,
            "greatest": state.greatest,
            "counts": dict(state.counts),
            "next_serial": self.ledger.next_serial,
            "next_chunk": self.ledger.next_chunk,
            "nodes": {node.signature: node.text for node in self.graph.nodes if is_stateful(node)},
            "segments": sorted(self.ledger.digests.keys() - {"meta"}),
        }


def is_stateful(node: Node) -> bool:
    """Whether a node keeps anything between steps."""
    return node.operator == "pattern" or _width(node) > 0


def _width(node: Node) -> int:
    """How many lists a node keeps in a partition."""
    return SLOTS_OF.get(OPERATORS.index(node.operator), 0)
