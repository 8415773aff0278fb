"""What a pattern remembers between steps: partitions, partial matches, texts, and rows where lists are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import Texts
from estream.event.columns_keys import Keys
from estream.event.pattern_kernel import BASE, BEGUN, FREE, LIVE, NONE, SEEN, SIZE, USED, new_header, packed
from estream.event.pattern_layout import Layout
from estream.event.words import FOREVER

Words = npt.NDArray[np.int64]
LEAST_RECORDS = 1024
_CODED = ("string", "binary", "decimal", "array", "map", "struct", "unknown")
"""Types of which a key's word is the code of a text."""


@dataclass(slots=True)
class Partials:
    """The partial matches of one pattern. Made by `no_partials`; `advance` of `estream.event.pattern` moves it."""

    keys: Keys
    texts: Texts
    header: Words
    partitions: Words
    records: Words
    kept: pa.Table
    """Rows of the partial matches, partition by partition in their order; empty if nothing asks for rows."""
    settled: int = LEAST_RECORDS
    """How much was left when it was last swept."""

    def load(self, layout: Layout) -> int:
        """What grows until it is swept: partial matches, partitions and texts."""
        return int(self.header[USED]) // layout.record_size + self.keys.count + len(self.texts.values)


def no_partials(layout: Layout, kept: pa.Schema) -> Partials:
    """The state of a pattern that has seen nothing; `kept` are the columns of rows that are to be remembered."""
    header = new_header(layout.record_size)
    records = np.empty(LEAST_RECORDS * layout.record_size, dtype=np.int64)
    keys = Keys(len(layout.pattern.partition), 0)
    partials = Partials(keys, Texts(), header, np.empty(0, dtype=np.int64), records, kept.empty_table())
    make_room(layout, partials)
    return partials


def make_room(layout: Layout, partials: Partials) -> None:
    """Room for partitions that were numbered since."""
    size = layout.partition_size
    have = len(partials.partitions) // size
    if partials.keys.count > have:
        longer = np.zeros((max(partials.keys.count, 2 * have), size), dtype=np.int64)
        longer[:have] = partials.partitions.reshape(-1, size)
        longer[have:, SIZE] = NONE
        partials.partitions = longer.reshape(-1)


def grow(partials: Partials) -> None:
    """Room for twice as many partial matches."""
    more = np.empty(max(len(partials.records), LEAST_RECORDS), dtype=np.int64)
    partials.records = np.concatenate([partials.records, more])


def sweep(layout: Layout, partials: Partials, watermark: int) -> None:
    """Forget partial matches that no row can complete any more, and partitions and texts that none has."""
    within = layout.pattern.within
    sizes = layout.partition_size, layout.record_size
    oldest = -FOREVER if within is None else watermark - within
    records = np.empty_like(partials.records)
    used = packed(partials.partitions, partials.records, *sizes, oldest, records)
    partials.records = records[: max(2 * used, LEAST_RECORDS * layout.record_size)].copy()
    partials.header[USED], partials.header[FREE:] = used, NONE
    partitions = partials.partitions.reshape(-1, layout.partition_size)
    live = np.flatnonzero(partitions[: partials.keys.count, LIVE])
    words, partials.partitions = partials.keys.words(live), partitions[live].reshape(-1)
    _keep_texts(layout, partials, words)
    partials.keys = Keys(len(layout.pattern.partition), 0)
    partials.keys.numbers([np.ascontiguousarray(column) for column in words.T], None, len(live))
    make_room(layout, partials)
    partials.settled = max(partials.load(layout), LEAST_RECORDS)


def _keep_texts(layout: Layout, partials: Partials, keys: Words) -> None:
    """Number anew the texts that keys, last values and aggregates have; `keys` is changed in place."""
    records = partials.records[: partials.header[USED]].reshape(-1, layout.record_size)
    columns = [keys[:, place] for place in coded_keys(layout)]
    partitions = partials.partitions.reshape(-1, layout.partition_size)
    columns += [partitions[:, place] for expression, place in layout.last.items() if expression.type.name == "string"]
    columns += [
        records[:, each.place]
        for each in layout.accumulators.values()
        if each.column.expression.type.name == "string" and each.fold != "count"
    ]
    used = np.unique(np.concatenate([*columns, np.empty(0, dtype=np.int64)]))
    used = used[(used >= 0) & (used < len(partials.texts.values))]  # a block has room that was never written
    for column in columns:
        column[:] = np.searchsorted(used, column)
    partials.texts = Texts([partials.texts.values[code] for code in used])


def coded_keys(layout: Layout) -> list[int]:
    """Which key attributes have texts' codes as their words."""
    types = {column.name: column.type.name for column in layout.pattern.columns}
    return [place for place, name in enumerate(layout.pattern.partition) if types.get(name, "unknown") in _CODED]


def rows_held(layout: Layout, partials: Partials) -> tuple[Words, Words]:
    """Places of the partitions with partial matches in `partitions`, and how many rows each has to remember."""
    partitions = partials.partitions.reshape(-1, layout.partition_size)
    live = np.flatnonzero(partitions[: partials.keys.count, LIVE])
    return live, partitions[live, SEEN] - partials.records[partitions[live, BASE] + BEGUN]
