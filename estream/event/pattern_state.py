"""What a pattern remembers between steps: partitions, partial matches, texts, and rows where lists are asked for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import Texts
from estream.event.columns_keys import Keys
from estream.event.pattern_kernel import (
    BEGUN,
    FREE,
    HEAD,
    HEADER_WORDS,
    LIVE,
    NONE,
    SEEN,
    TAIL,
    USED,
    drop_expired,
    packed,
)
from estream.event.pattern_layout import Layout

Words = npt.NDArray[np.int64]
LEAST_SLOTS = 1024
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
    settled: int = LEAST_SLOTS
    """How much was left when it was last swept."""

    @property
    def load(self) -> int:
        """What grows until it is swept: slots, partitions and texts."""
        return int(self.header[USED]) + self.keys.count + len(self.texts.values)

    def is_full(self, layout: Layout) -> bool:
        """Whether there is no slot for one more partial match."""
        return bool(self.header[FREE] == NONE and self.header[USED] == len(self.records) // layout.record_size)


def no_partials(layout: Layout, kept: pa.Schema) -> Partials:
    """The state of a pattern that has seen nothing; `kept` are the columns of rows that are to be remembered."""
    header = np.zeros(HEADER_WORDS, dtype=np.int64)
    header[FREE] = NONE
    records = np.empty(LEAST_SLOTS * layout.record_size, dtype=np.int64)
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
        longer[have:, (HEAD, TAIL)] = NONE
        partials.partitions = longer.reshape(-1)


def grow(partials: Partials) -> None:
    """Room for twice as many partial matches."""
    partials.records = np.concatenate([partials.records, np.empty_like(partials.records)])


def sweep(layout: Layout, partials: Partials, watermark: int) -> None:
    """Forget partial matches that no row can complete any more, and partitions and texts that none has."""
    within = layout.pattern.within
    sizes = layout.partition_size, layout.record_size
    if within is not None:
        drop_expired(partials.header, partials.partitions, partials.records, *sizes, watermark - within)
    partitions = partials.partitions.reshape(-1, layout.partition_size)
    live = np.flatnonzero(partitions[: partials.keys.count, HEAD] != NONE)
    words, count = partials.keys.words(live), int(partitions[live, LIVE].sum())
    partials.partitions = partitions[live].reshape(-1)
    records = np.empty(max(2 * count, LEAST_SLOTS) * layout.record_size, dtype=np.int64)
    partials.header[FREE], partials.header[USED] = NONE, packed(partials.partitions, partials.records, *sizes, records)
    partials.records = records
    _keep_texts(layout, partials, words)
    partials.keys = Keys(len(layout.pattern.partition), 0)
    partials.keys.numbers([np.ascontiguousarray(column) for column in words.T], None, len(live))
    make_room(layout, partials)
    partials.settled = max(partials.load, LEAST_SLOTS)


def _keep_texts(layout: Layout, partials: Partials, keys: Words) -> None:
    """Number anew the texts that keys, last values and aggregates have; `keys` is changed in place."""
    records = partials.records.reshape(-1, layout.record_size)[: partials.header[USED]]
    columns = [keys[:, place] for place in coded_keys(layout)]
    partitions = partials.partitions.reshape(-1, layout.partition_size)
    columns += [partitions[:, place] for expression, place in layout.last.items() if expression.type.name == "string"]
    columns += [
        records[:, each.place]
        for each in layout.accumulators.values()
        if each.column.expression.type.name == "string" and each.fold != "count"
    ]
    used = np.unique(np.concatenate([*columns, np.empty(0, dtype=np.int64)]))
    used = used[used < len(partials.texts.values)]
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
    live = np.flatnonzero(partitions[: partials.keys.count, HEAD] != NONE)
    oldest = partials.records.reshape(-1, layout.record_size)[partitions[live, HEAD]]
    return live, partitions[live, SEEN] - oldest[:, BEGUN]
