"""Exact partition numbers: an open-addressing table from key words to 0, 1, 2, ... in the order they are first seen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from estream.event.compiled import compiled

Words = npt.NDArray[np.int64]
EMPTY = -1
LEAST_SIZE = 1024
MIX = -7046029254386353131
"""2**64 divided by the golden ratio, odd: spreads keys that differ in their low bits."""


@compiled
def place_of(table: Words, prefixes: Words, values: Words, prefix: int, value: int) -> int:
    """Where in the table the key stands, or would stand."""
    mask = len(table) - 1
    mixed = (value ^ (prefix * 31 + 17)) * MIX
    place = (mixed ^ (mixed >> 29)) & mask
    while table[place] != EMPTY and (values[table[place]] != value or prefixes[table[place]] != prefix):
        place = (place + 1) & mask
    return place


@compiled
def enter(
    table: Words, prefixes: Words, values: Words, used: int, keys: tuple[Words, Words], out: Words, at: int
) -> tuple[int, int]:
    """Number the keys from `at` on until the table is half full; gives (numbers used, where it stopped).

    A negative prefix is no key: its number is the prefix.
    """
    prefix_words, value_words = keys
    while at < len(out) and 2 * used < len(table):
        prefix, value = prefix_words[at], value_words[at]
        if prefix < 0:
            out[at] = prefix
        else:
            place = place_of(table, prefixes, values, prefix, value)
            number = table[place]
            if number == EMPTY:
                number = used
                table[place] = number
                prefixes[number] = prefix
                values[number] = value
                used += 1
            out[at] = number
        at += 1
    return used, at


@compiled
def rehash(table: Words, prefixes: Words, values: Words, used: int) -> None:
    """Enter all numbers into an empty, larger table."""
    for number in range(used):
        table[place_of(table, prefixes, values, prefixes[number], values[number])] = number


class KeyTable:
    """Numbers for pairs of (number of the attributes before, word of this attribute)."""

    def __init__(self) -> None:
        self.used = 0
        self.prefixes: Words = np.empty(0, dtype=np.int64)
        self.values: Words = np.empty(0, dtype=np.int64)
        self._resize(LEAST_SIZE)

    def _resize(self, size: int) -> None:
        table = np.full(size, EMPTY, dtype=np.int64)
        prefixes, values = np.empty(size // 2 + 1, dtype=np.int64), np.empty(size // 2 + 1, dtype=np.int64)
        if self.used:
            prefixes[: self.used], values[: self.used] = self.prefixes[: self.used], self.values[: self.used]
            rehash(table, prefixes, values, self.used)
        self.table, self.prefixes, self.values = table, prefixes, values

    def numbers(self, prefixes: Words, values: Words) -> Words:
        """The numbers of many pairs, new ones where they were not seen before."""
        out = np.empty(len(values), dtype=np.int64)
        at = 0
        while True:
            self.used, at = enter(self.table, self.prefixes, self.values, self.used, (prefixes, values), out, at)
            if at == len(out):
                return out
            self._resize(4 * len(self.table))

    def replace(self, words: Words) -> None:
        """Let every word be another one: `words` gives it; two that differ must go on to differ."""
        self.values[: self.used] = words[self.values[: self.used]]
        self.table[:] = EMPTY
        rehash(self.table, self.prefixes, self.values, self.used)


class Keys:
    """Partition numbers of a group: one table per key attribute. `first` is the number of the first partition."""

    def __init__(self, attributes: int, first: int) -> None:
        self.tables = tuple(KeyTable() for _ in range(attributes))
        self.first = first

    @property
    def count(self) -> int:
        """How many partitions there are."""
        return self.first + (self.tables[-1].used if self.tables else 1 - self.first)

    def numbers(self, attributes: list[Words], missing: npt.NDArray[np.bool_] | None, length: int) -> Words:
        """Partition numbers of rows by the words of their key attributes; -1 where an attribute is missing."""
        numbers = np.zeros(length, dtype=np.int64)
        if missing is not None:
            numbers[missing] = -1
        for table, values in zip(self.tables, attributes, strict=True):
            numbers = table.numbers(numbers, values)
        return numbers if self.first == 0 or not self.tables else numbers + np.where(numbers >= 0, self.first, 0)

    def words(self, numbers: Words) -> Words:
        """The words of the key attributes of partitions, one row each."""
        out = np.empty((len(numbers), len(self.tables)), dtype=np.int64)
        left = numbers - self.first
        for position in range(len(self.tables) - 1, -1, -1):
            out[:, position] = self.tables[position].values[left]
            left = self.tables[position].prefixes[left]
        return out
