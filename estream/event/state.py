"""What a graph remembers between steps: lists of what waits, rows they refer to, rows above the watermark, counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event import words
from estream.event.columns import Texts
from estream.event.columns_keys import Keys
from estream.event.compiled import tell_of_first_compilation
from estream.event.graph import Graph, Group
from estream.event.kernel import UNBORN
from estream.event.ledger import Ledger
from estream.event.masks import compile_masks
from estream.event.memory import Memory
from estream.event.pattern_graph import GraphPattern, begin_patterns
from estream.event.rows import Rows
from estream.event.words import BUCKET_BITS, FOREVER, NONE

Words = npt.NDArray[np.int64]
BUCKET = 1 << BUCKET_BITS
"""Partitions whose lists are saved together."""
BEGINNING = -FOREVER
"""The watermark before anything was seen."""


class Partitions:
    """The lists of a group: per partition and slot the first and last item that waits, and when a timer is due."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.keys = Keys(group.key_length, 1 if self.has_unborn(group) else 0)
        self.lists: Words = np.empty((0, group.slots, 2), dtype=np.int64)
        self.due: Words = np.empty(0, dtype=np.int64)
        self.temporal_next: Words = np.empty(0, dtype=np.int64)
        self.touched: Words = np.empty(0, dtype=np.int64)
        """By bucket of partitions whether something happened there since the last save."""
        self.written = 0
        """How many buckets were saved."""
        self.extend()

    @staticmethod
    def has_unborn(group: Group) -> bool:
        """Whether partition 0 stands for the partitions not seen yet: temporal events belong to them too."""
        return group.is_keyed and bool(group.temporals)

    def extend(self) -> None:
        """Make room for partitions that were numbered since."""
        have, need = len(self.due), self.keys.count
        if need <= have:
            return
        capacity = max(need, 2 * have)
        self.lists = _longer(self.lists, capacity, NONE)
        self.due = _longer(self.due, capacity, FOREVER)
        self.temporal_next = _longer(self.temporal_next, capacity, UNBORN)
        self.touched = _longer(self.touched, -(-capacity // BUCKET), 1)
        if have == 0:
            self.temporal_next[0] = 0

    def keep(self, numbers: Words) -> None:
        """Keep these partitions only, and number them anew."""
        words_kept = self.keys.words(numbers)
        self.keys = Keys(len(self.keys.tables), self.keys.first)
        self.keys.numbers([np.ascontiguousarray(column) for column in words_kept.T], None, len(numbers))
        kept = slice(0, len(numbers))
        for array, nothing in ((self.lists, NONE), (self.due, FOREVER)):
            array[kept] = array[numbers]
            array[len(numbers) :] = nothing
        self.touched[:] = 1

    def born(self, numbers: Words) -> npt.NDArray[np.bool_]:
        """Which partitions have begun."""
        return np.asarray(self.temporal_next[numbers] != UNBORN)

    def bear(self, numbers: Words) -> None:
        """Let partitions have begun, with nothing of what partition 0 has."""
        self.temporal_next[numbers] = 0

    def expose(self, memory: Memory) -> None:
        """Let the kernel run this group."""
        header = memory.header
        memory.point(words.LISTS, self.lists)
        memory.point(words.DUE, self.due)
        memory.point(words.TOUCHED, self.touched)
        memory.point(words.TIMERS, self.group.timers)
        header[words.TIMERS_COUNT] = len(self.group.timers)
        header[words.SLOTS] = self.group.slots
        header[words.KEYS] = self.keys.count
        if self.group.temporals:
            memory.point(words.TEMPORAL_NEXT, self.temporal_next)
        else:
            header[words.TEMPORAL_NEXT] = 0


def _longer(array: Words, length: int, value: int) -> Words:
    longer = np.full((length, *array.shape[1:]), value, dtype=np.int64)
    longer[: len(array)] = array
    return longer


@dataclass(slots=True)
class State:
    """Everything that `step` moves. Made by `begin`, or by `estream.event.segments.load`."""

    memory: Memory
    texts: Texts
    rows: Rows
    partitions: tuple[Partitions, ...]
    waiting: pa.Table
    """Rows above the watermark (`order: event_time`)."""
    watermark: int = BEGINNING
    first: int | None = None
    """The time of the first row: `every` begins after it."""
    greatest: int = BEGINNING
    """The greatest row time processed."""
    swept: int = 0
    """Rows that were left when rows were last swept."""
    pooled: int = 0
    """Words of the pool that were left then."""
    constants: int = 0
    """The first texts are those that masks name: their codes never change."""
    patterns: tuple[GraphPattern, ...] = ()
    ledger: Ledger = field(default_factory=Ledger)
    counts: Counter[str] = field(default_factory=Counter)
    """Rows that took no part: `late`, `duplicate`, `null_time`, `null_id`, `null_event`; rows that took no part in a
    partitioned event: `null_key`; values that became null: `wrong_type`."""


def begin(graph: Graph) -> State:
    """The state of a graph that has seen nothing."""
    tell_of_first_compilation()
    memory, texts = Memory(), Texts()
    masks = compile_masks(graph)
    rows = Rows(graph, texts, masks.columns)
    memory.header[words.FREE_ITEM] = NONE
    table, frames = masks.table(graph.conjunct_table, texts)
    for word, array in (
        (words.NODES, graph.table),
        (words.OPERANDS, graph.operands),
        (words.PARENTS, graph.parents),
        (words.CONJUNCTS, table),
        (words.EVENT_RANK, graph.event_rank),
        (words.BUFFERS, np.zeros(2 * len(graph.nodes) + 2, dtype=np.int64)),
    ):
        memory.point(word, array)
    partitions = tuple(Partitions(group) for group in graph.groups)
    memory.keep(frames)
    return State(
        memory,
        texts,
        rows,
        partitions,
        rows.schema.empty_table(),
        constants=len(texts.values),
        patterns=begin_patterns(graph),
    )
