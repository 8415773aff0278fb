"""Matches as Arrow: times, ids, the output of each, and on request the ids of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import Texts, one_chunk
from estream.event.evaluate import evaluate
from estream.event.identity import text_hash
from estream.event.pattern_kernel import FOUND_COUNT, FOUND_ID, FOUND_ROW, FOUND_START, chains, match_ids
from estream.event.pattern_layout import Accumulator, Layout, is_gathered
from estream.event.rows import arrow_type
from estream.spec.expression import Aggregate, Attribute, Expression, Operation, walk
from estream.spec.expression_text import to_text
from estream.spec.types import DataType

Words = npt.NDArray[np.int64]
Columns: TypeAlias = Mapping[tuple[str | None, str], pa.Array]
MATCH = "match"
"""Whose attributes the aggregates of a match are, in expressions over its last row."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a step has found: words of the matches, and the rows it went through."""

    words: Words
    time: Words
    ids: Words
    attributes: Columns
    previous: Words
    offset: int
    kept: pa.Table

    def field(self, place: int) -> Words:
        """A word of every match."""
        return np.ascontiguousarray(self.words[:, place])


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches in the order of their last rows; `rows` are the ids of each one's rows, if they were asked for."""

    start: Words
    end: Words
    id: Words
    output: pa.Table
    rows: pa.LargeListArray | None
    null_keys: int
    """Rows that are in no partition, because their key is null."""

    def __len__(self) -> int:
        return len(self.end)


def matches(layout: Layout, found: Found, texts: Texts, with_rows: bool, null_keys: int) -> Matches:
    """The matches of a step, with their output."""
    last = found.field(FOUND_ROW)
    start, end = found.field(FOUND_START), found.time[last]
    ids = match_ids(text_hash(layout.pattern.name), found.field(FOUND_ID), start, found.ids[last], end)
    lists = _Lists(found)
    output = _output(layout, found, texts, lists)
    return Matches(start, end, ids, output, lists.of(lists.rows.column("id")) if with_rows else None, null_keys)


def decoded(column: pa.Array) -> pa.Array:
    """The column, its texts one by one where they came encoded by a dictionary."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


class _Lists:
    """The rows of the matches, gathered when first asked for."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self._rows: pa.Table | None = None
        self.counts = found.field(FOUND_COUNT)

    @property
    def rows(self) -> pa.Table:
        if self._rows is None:
            places = np.empty(int(self.counts.sum()), dtype=np.int64)
            chains(self.found.previous, self.found.field(FOUND_ROW) + self.found.offset, self.counts, places)
            self._rows = self.found.kept.take(pa.array(places))
        return self._rows

    def of(self, values: pa.Array | pa.ChunkedArray) -> pa.LargeListArray:
        """The values of the rows, a list for each match."""
        return pa.LargeListArray.from_arrays(pa.array(np.append(0, np.cumsum(self.counts))), one_chunk(values))

    def value(self, aggregate: Aggregate) -> pa.Array:
        """`collect` as lists, `first` as the first row's value."""
        assert aggregate.operand is not None
        columns: Columns = {(None, name): one_chunk(self.rows.column(name)) for name in self.rows.column_names[1:]}
        values = _evaluated(aggregate.operand, columns, self.rows.num_rows)
        if aggregate.name == "first":
            return values.take(pa.array(np.cumsum(self.counts) - self.counts))
        return self.of(values)


def _output(layout: Layout, found: Found, texts: Texts, lists: _Lists) -> pa.Table:
    last = pa.array(found.field(FOUND_ROW))
    columns: dict[tuple[str | None, str], pa.Array] = {}
    for _, expression in layout.output:
        for part in _asked(expression):
            if isinstance(part, Aggregate):
                columns[MATCH, to_text(part)] = _aggregate(layout, found, texts, lists, part)
            else:
                columns[part.event, part.name] = decoded(found.attributes[part.event, part.name].take(last))
    made = {name: _evaluated(_over_match(expression), columns, len(found.words)) for name, expression in layout.output}
    return pa.table(made)


def _asked(expression: Expression) -> Iterator[Attribute | Aggregate]:
    """What an output asks of a match: attributes of the last row, and aggregates."""
    match expression:
        case Attribute() | Aggregate():
            yield expression
        case Operation():
            for operand in expression.operands:
                yield from _asked(operand)


def _over_match(expression: Expression) -> Expression:
    """The expression with aggregates as attributes of the match."""
    match expression:
        case Aggregate():
            return Attribute(MATCH, to_text(expression), expression.type, expression.span)
        case Operation():
            return replace(expression, operands=tuple(map(_over_match, expression.operands)))
    return expression


def _evaluated(expression: Expression, columns: Columns, count: int) -> pa.Array:
    """The values of an expression; an attribute is what it is, of whatever type."""
    if isinstance(expression, Attribute):
        return columns[expression.event, expression.name]
    return one_chunk(evaluate(expression, columns, count))


def _aggregate(layout: Layout, found: Found, texts: Texts, lists: _Lists, aggregate: Aggregate) -> pa.Array:
    if aggregate.operand is None:
        return pa.array(found.field(FOUND_COUNT))
    if is_gathered(aggregate):
        return lists.value(aggregate)
    made_of = layout.of_aggregate(aggregate)
    if aggregate.name == "avg":
        total, count = (_values(layout, found, each) for each in made_of)
        return pa.array(total / np.maximum(count, 1), mask=count == 0)
    nulls = found.field(layout.place_in_match(made_of[0]) + 1) != 0
    return _as_arrow(_values(layout, found, made_of[0]), nulls, aggregate.type, texts)


def _values(layout: Layout, found: Found, accumulator: Accumulator) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    words = found.field(layout.place_in_match(accumulator))
    return words.view(np.float64) if accumulator.is_real else words


def _as_arrow(
    values: npt.NDArray[np.int64] | npt.NDArray[np.float64], nulls: npt.NDArray[np.bool_], kind: DataType, texts: Texts
) -> pa.Array:
    """Words as values of their type."""
    plain = pa.array(values, mask=nulls)
    if kind.name == "string":
        return pa.array(texts.values, pa.string()).take(plain)
    if kind.name == "date":
        return plain.cast(pa.int32()).cast(pa.date32())
    return plain.cast(arrow_type(kind))


def gathered_attributes(layout: Layout) -> tuple[str, ...] | None:
    """Attributes of all rows of a match that the output asks for; None if it asks for no rows."""
    names: dict[str, None] = {}
    gathered = False
    for _, expression in layout.output:
        for part in _asked(expression):
            if isinstance(part, Aggregate) and part.operand is not None and is_gathered(part):
                gathered = True
                names |= dict.fromkeys(each.name for each in walk(part.operand) if isinstance(each, Attribute))
    return tuple(names) if gathered else None
