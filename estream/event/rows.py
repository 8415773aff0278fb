"""Rows the kernel refers to by number: those kept from earlier steps, then those of this one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event import words
from estream.event.arrow_types import ARROW_TYPES
from estream.event.columns import Texts, floats_of, nulls_of, one_chunk, word_kind, words_of
from estream.event.graph import Graph, Group
from estream.event.memory import Memory
from estream.spec.types import DataType

Words = npt.NDArray[np.int64]

_ARRAYS = ("_time", "_id", "_event", "_serial", "_integers", "_floats", "_nulls")


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type that carries a Spark SQL type."""
    if kind.name == "decimal" and len(kind.arguments) == 2:
        return pa.decimal128(int(kind.arguments[0]), int(kind.arguments[1]))
    if kind.element is not None:
        return pa.list_(arrow_type(kind.element))
    return ARROW_TYPES.get(kind.name, pa.string())


def batch_schema(graph: Graph) -> pa.Schema:
    """What a batch of primitive occurrences looks like: event code, time in microseconds, id, then the attributes.

    Leaves share a column where name and type are the same; of columns with one name the later ones carry their type.
    """
    names: list[str] = []
    fields = [pa.field("event", pa.int64()), pa.field("time", pa.int64()), pa.field("id", pa.int64())]
    for column in graph.columns:
        name = column_name(column.name, column.type, names)
        names.append(name)
        fields.append(pa.field(name, arrow_type(column.type)))
    return pa.schema(fields)


def column_name(name: str, kind: DataType, taken: list[str]) -> str:
    """The name of an attribute's column in a batch; `event`, `time` and `id` are the occurrence's own."""
    return f"{name}:{kind}" if name in taken or name in ("event", "time", "id") else name


def key_kinds(graph: Graph, group: Group) -> list[str]:
    """What the words of each key attribute of a group stand for: words of one kind can be compared."""
    kinds: list[set[str]] = [set() for _ in range(group.key_length)]
    for node in group.inputs:
        named = {node.source or "": node.key} if node.operator == "leaf" else dict(node.keys)
        for leaf, key in named.items():
            for position, attribute in enumerate(key):
                column = graph.columns[graph.column_of(leaf, attribute)]
                kinds[position].add(word_kind(arrow_type(column.type)))
    return [" or ".join(sorted(found)) for found in kinds]


class Rows:
    """Time, id and event code of every row as words, the attributes as Arrow, and what masks compare, side by side."""

    def __init__(self, graph: Graph, texts: Texts, masked: tuple[tuple[int, bool], ...]) -> None:
        """`masked` are the attributes masks ask for: the number of the column, and whether as a double."""
        self.schema = batch_schema(graph)
        self.attributes = pa.schema(list(self.schema)[3:])
        self.table: pa.Table = self.attributes.empty_table()
        self.texts = texts
        self.masked = masked
        self.count = 0
        self._reserve(1024)

    @property
    def time(self) -> Words:
        """When each row occurred."""
        return self._time[: self.count]

    @property
    def id(self) -> Words:
        """The id of each row."""
        return self._id[: self.count]

    @property
    def event(self) -> Words:
        """The event code of each row."""
        return self._event[: self.count]

    @property
    def serial(self) -> Words:
        """The number under which each row was saved, or -1."""
        return self._serial[: self.count]

    def _reserve(self, capacity: int) -> None:
        old = self.__dict__.copy()
        self._capacity = capacity
        self._time, self._id, self._event, self._serial = (np.empty(capacity, dtype=np.int64) for _ in range(4))
        width = len(self.masked)
        self._integers = np.empty((width, capacity), dtype=np.int64)
        self._floats = np.empty((width, capacity), dtype=np.float64)
        self._nulls = np.empty((width, capacity), dtype=np.int64)
        for name in _ARRAYS:
            if name in old:
                getattr(self, name)[..., : self.count] = old[name][..., : self.count]

    def append(self, event: Words, time: Words, id_: Words, attributes: pa.Table) -> int:
        """Add rows; gives the number of the first."""
        first, count = self.count, self.count + len(time)
        if count > self._capacity:
            self._reserve(max(count, 2 * self._capacity) if self.count else count)
        self._time[first:count], self._id[first:count], self._event[first:count] = time, id_, event
        self._serial[first:count] = words.NONE
        for place, (column, as_double) in enumerate(self.masked):
            values = one_chunk(attributes.column(column))
            if as_double:
                self._floats[place, first:count] = floats_of(values)
            else:
                self._integers[place, first:count] = words_of(values, self.texts)
            missing = nulls_of(values)
            self._nulls[place, first:count] = 0 if missing is None else missing
        self.table = pa.concat_tables([self.table, attributes]) if self.table.num_rows else attributes
        self.count = count
        return first

    @property
    def text_places(self) -> list[int]:
        """The places of masked attributes that are codes of texts."""
        types = self.attributes.types
        return [place for place, (column, _) in enumerate(self.masked) if word_kind(types[column]) == "text"]

    def masked_words(self, place: int) -> Words:
        """The words of a masked attribute."""
        return self._integers[place, : self.count]

    def keep(self, rows: Words) -> None:
        """Keep these rows only, in this order."""
        count = len(rows)
        for name in _ARRAYS:
            array: npt.NDArray[Any] = getattr(self, name)
            # In place: the room is needed again for the next batch, and fresh memory is slow.
            array[..., :count] = array[..., rows]
        self.table = self.table.take(pa.array(rows)).combine_chunks()
        self.count = count

    def expose(self, memory: Memory) -> None:
        """Let the kernel see the rows."""
        memory.point(words.ROW_TIME, self._time)
        memory.point(words.ROW_ID, self._id)
        memory.point(words.ROW_EVENT, self._event)
        memory.point(words.INTEGERS, self._integers)
        memory.point(words.FLOATS, self._floats)
        memory.point(words.NULLS, self._nulls)
        memory.header[words.STRIDE] = self._capacity
