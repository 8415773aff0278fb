"""What stream operators keep between steps: arrays that grow together, exact numbers for keys, rows; saved by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import Texts, nulls_of, one_chunk
from estream.event.columns_keys import KeyTable
from estream.event.compiled import compiled
from estream.event.operator_text import key_words

Words = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
NONE = -1
LEAST_CAPACITY = 1024
MOST_CHUNKS = 64
MOST_ROOM = 64
"""Room is given back when it is so many times what is used."""
NULL_PREFIX = 1 << 40
"""Added to the number of the columns before where a column is null, so that a null is equal to nulls only."""


class Arrays:
    """Named arrays of one length: of words, which begin as `NONE`, of doubles and of counters, which begin as 0."""

    def __init__(self, words: Sequence[str] = (), doubles: Sequence[str] = (), counters: Sequence[str] = ()) -> None:
        self._words = frozenset(words)
        self.length = 0
        self._capacity = 0
        self._arrays: dict[str, npt.NDArray[Any]] = {
            **{name: np.empty(0, dtype=np.int64) for name in (*words, *counters)},
            **{name: np.empty(0, dtype=np.float64) for name in doubles},
        }

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """The array with the room behind what is used, for kernels."""
        return self._arrays[name]

    def used(self, name: str) -> npt.NDArray[Any]:
        """The array without the room behind it."""
        return self._arrays[name][: self.length]

    def extend(self, length: int) -> int:
        """Make the arrays at least so long; gives the length before."""
        before = self.length
        if length > self._capacity:
            self._capacity = max(length, 2 * self._capacity, LEAST_CAPACITY)
            for name, array in self._arrays.items():
                longer = np.empty(self._capacity, dtype=array.dtype)
                longer[:before] = array[:before]
                self._arrays[name] = longer
        if length > before:
            for name, array in self._arrays.items():
                array[before:length] = NONE if name in self._words else 0
            self.length = length
        return before

    def keep(self, places: Words) -> None:
        """Keep these places only, in this order."""
        count = len(places)
        roomy = self._capacity > max(MOST_ROOM * count, LEAST_CAPACITY)
        for name, array in self._arrays.items():
            kept = array[places]
            if roomy:
                self._arrays[name] = kept
            else:
                array[:count] = kept
        self.length = count
        self._capacity = count if roomy else self._capacity

    def table(self) -> pa.Table:
        """The arrays as columns."""
        return pa.table({name: pa.array(array[: self.length].copy()) for name, array in self._arrays.items()})

    def fill(self, table: pa.Table) -> None:
        """Take the place of what there is; the columns are those of `table()`."""
        for name in self._arrays:
            self._arrays[name] = np.array(table.column(name).to_numpy())
        self.length = self._capacity = table.num_rows


@compiled
def seen_first(indices: npt.NDArray[Any], count: int) -> Words:
    """The indices in the order they are first seen, each once."""
    seen, out, found = np.zeros(count, dtype=np.bool_), np.empty(count, dtype=np.int64), 0
    for entry in range(len(indices)):
        index = indices[entry]
        if not seen[index]:
            seen[index] = True
            out[found] = index
            found += 1
    return out[:found]


@compiled
def first_rows(numbers: Words, before: int, out: Words) -> None:
    """The first row of each number from `before` on; numbers are given in the order of rows."""
    found = 0
    for row in range(len(numbers)):
        if numbers[row] == before + found:
            out[found] = row
            found += 1
            if found == len(out):
                return


class KeyNumbers:
    """Exact numbers 0, 1, 2, ... for the values of some columns, in the order they are first seen."""

    def __init__(self, schema: pa.Schema) -> None:
        self.values: pa.Table = schema.empty_table()
        """The values of every number."""
        self._begin()

    def _begin(self) -> None:
        self._texts = tuple(Texts() for _ in self.values.schema)
        self._tables = tuple(KeyTable() for _ in self.values.schema)

    @property
    def count(self) -> int:
        """How many numbers there are; without columns everything has the number 0."""
        return self.values.num_rows if self._tables else 1

    def numbers(self, rows: pa.Table) -> Words:
        """The number of each row, a new one where its values were not seen before."""
        before = self.count
        numbers = self._entered(rows)
        if self._tables and self._tables[-1].used > before:
            first = np.empty(self._tables[-1].used - before, dtype=np.int64)
            first_rows(numbers, before, first)
            new = rows.select(self.values.column_names).take(pa.array(first))
            self.values = joined(self.values, new.cast(self.values.schema))
        return numbers

    def _entered(self, rows: pa.Table) -> Words:
        if len(self._tables) == 1:
            column = one_chunk(rows.column(self.values.column_names[0]))
            if pa.types.is_dictionary(column.type) and column.null_count == 0:
                return self._of_dictionary(column)
        numbers = np.zeros(rows.num_rows, dtype=np.int64)
        for name, texts, table in zip(self.values.column_names, self._texts, self._tables, strict=True):
            column = one_chunk(rows.column(name))
            words, nulls = key_words(column, texts), nulls_of(column)
            if nulls is not None:
                numbers, words = np.where(nulls, numbers + NULL_PREFIX, numbers), np.where(nulls, 0, words)
            numbers = table.numbers(numbers, words)
        return numbers

    def _of_dictionary(self, column: pa.DictionaryArray) -> Words:
        """The numbers of a column that is encoded by a dictionary: those of its values, by way of its indices."""
        indices = column.indices.to_numpy()
        places = seen_first(indices, len(column.dictionary))
        words = key_words(column.dictionary.take(pa.array(places)), self._texts[0])
        by_place = np.empty(len(column.dictionary), dtype=np.int64)
        by_place[places] = self._tables[0].numbers(np.zeros(len(places), dtype=np.int64), words)
        numbers: Words = by_place[indices]
        return numbers

    def keep(self, places: Words) -> None:
        """Forget all but these numbers, which become 0, 1, 2, ..."""
        self.fill(self.values.take(pa.array(places)).combine_chunks())

    def fill(self, values: pa.Table) -> None:
        """Number these values, which differ from each other."""
        self.values = values
        self._begin()
        self._entered(values)


@dataclass(slots=True)
class Kept:
    """Everything one operator keeps, by name."""

    keys: dict[str, KeyNumbers] = field(default_factory=dict)
    arrays: dict[str, Arrays] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def tables_by_name(self) -> dict[str, pa.Table]:
        """All of it but the numbers."""
        return {
            **{f"keys.{name}": keys.values for name, keys in self.keys.items()},
            **{f"arrays.{name}": arrays.table() for name, arrays in self.arrays.items()},
            **{f"tables.{name}": table for name, table in self.tables.items()},
        }

    def fill(self, tables: Mapping[str, pa.Table], numbers: Mapping[str, int]) -> None:
        """Put what `tables_by_name` gave, and the numbers, in the place of what there is."""
        for name, keys in self.keys.items():
            keys.fill(tables[f"keys.{name}"])
        for name, arrays in self.arrays.items():
            arrays.fill(tables[f"arrays.{name}"])
        for name in self.tables:
            self.tables[name] = tables[f"tables.{name}"]
        self.numbers.update(numbers)


def joined(rows: pa.Table, more: pa.Table) -> pa.Table:
    """Both tables' rows; chunks are put together now and then only, so that many small steps stay cheap."""
    both = pa.concat_tables([rows, more]) if rows.num_rows else more
    chunked = both.num_columns > 0 and both.column(0).num_chunks > MOST_CHUNKS
    return both.combine_chunks() if chunked else both


def place_map(kept: Words, length: int) -> Words:
    """For every old place its new one, `NONE` where it is not kept; one entry more, so that `NONE` maps to `NONE`."""
    places = np.full(length + 1, NONE, dtype=np.int64)
    places[kept] = np.arange(len(kept))
    return places
