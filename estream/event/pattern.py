"""Patterns over one stream (docs/semantics.md, section 6): compile one, and move its partial matches row by row."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import Texts, floats_of, nulls_of, one_chunk, words_of
from estream.event.columns_order import sorted_places
from estream.event.evaluate import evaluate
from estream.event.generated import load_generated
from estream.event.pattern_kernel import LAST_ROW, MATCHES, chains
from estream.event.pattern_layout import Column, Layout
from estream.event.pattern_matches import Columns, Found, Matches, decoded, gathered_attributes, matches
from estream.event.pattern_source import source_of
from estream.event.pattern_state import Partials, grow, make_room, no_partials, rows_held, sweep
from estream.event.rows import arrow_type
from estream.plan.model import Pattern
from estream.plan.pattern import needed_columns
from estream.spec.expression import Attribute, walk
from estream.spec.expression_text import to_text

Words = npt.NDArray[np.int64]
LEAST_ROOM = 1024


@dataclass(frozen=True, slots=True)
class Matcher:
    """A pattern ready to run, immutable."""

    pattern: Pattern
    layout: Layout
    run: Callable[..., int]
    with_rows: bool
    """Whether matches tell the ids of their rows."""
    keeps_rows: bool
    """Whether rows of partial matches have to be remembered."""
    needed: tuple[str, ...]
    """Columns of the query that predicates, keys and output ask for."""
    kept: pa.Schema
    signature: str
    """Tells states apart that do not mean the same."""
    arrival: bool = False
    """Whether rows are taken as they come."""


def compile_pattern(pattern: Pattern, with_rows: bool = False, arrival: bool = False) -> Matcher:
    """Compile a pattern, or load what an earlier process compiled."""
    layout = Layout(pattern)
    gathered = gathered_attributes(layout)
    keeps_rows = with_rows or gathered is not None
    source = source_of(layout, keeps_rows)
    kept = pa.schema([("id", pa.int64()), *_fields(pattern, gathered or ())]) if keeps_rows else pa.schema([])
    columns = [f"{to_text(expression)} {expression.type}" for expression in layout.columns]
    told = repr((source, pattern.partition, str(kept), columns))
    return Matcher(
        pattern,
        layout,
        load_generated("pattern", source).run,
        with_rows,
        keeps_rows,
        needed_columns(pattern),
        kept,
        hashlib.sha256(told.encode()).hexdigest(),
        arrival,
    )


def begin_partials(matcher: Matcher) -> Partials:
    """The state of a pattern that has seen nothing."""
    return no_partials(matcher.layout, matcher.kept)


def advance(
    matcher: Matcher, partials: Partials, time: Words, ids: Words, attributes: Mapping[str, pa.Array]
) -> Matches:
    """Take rows in, each once and in ascending time, and give the matches they complete.

    Rows of one time are taken by their ids, in the order of arrival as they come. Texts may be dictionary-encoded: then
    each is looked up once.
    """
    places = None if matcher.arrival else sorted_places(time, ids, ids, ids)
    if places is not None:
        time, ids, taken = time[places], ids[places], pa.array(places)
        attributes = {name: column.take(taken) for name, column in attributes.items()}
    keys, texts = _key_numbers(matcher, partials, attributes, len(time)), partials.texts
    make_room(matcher.layout, partials)
    columns: Columns = {(None, name): column for name, column in attributes.items()}
    given = [part for one in matcher.layout.columns.values() for part in _column(one, columns, len(time), texts)]
    constants = np.array([texts.code(text) for text in matcher.layout.texts] or [0], dtype=np.int64)
    offset = partials.kept.num_rows
    previous = np.arange(-1, offset + len(time) - 1) if matcher.keeps_rows else np.empty(0, dtype=np.int64)
    found = _run(matcher, partials, [keys, time, ids, constants, *given], previous, offset)
    rows = Found(found, time, ids, columns, previous, offset, _with_kept(matcher, partials, ids, attributes))
    made = matches(matcher.layout, rows, texts, matcher.with_rows, int((keys < 0).sum()))
    if matcher.keeps_rows:
        _keep(matcher, partials, previous, rows.kept)
    return made


def settle(matcher: Matcher, partials: Partials, watermark: int) -> None:
    """Forget what is of no use, when enough has been added since the last time."""
    if partials.load(matcher.layout) > 2 * partials.settled:
        sweep(matcher.layout, partials, next_time(matcher, watermark))


def next_time(matcher: Matcher, watermark: int) -> int:
    """The least time of a row to come; in order of arrival it is the greatest seen, which the watermark passed."""
    return watermark - 1 if matcher.arrival else watermark


def _run(matcher: Matcher, partials: Partials, given: Sequence[Any], previous: Words, offset: int) -> Words:
    """The words of the matches, one row each."""
    size, header = matcher.layout.found_size, partials.header
    found = np.empty(max(LEAST_ROOM, len(given[0]) // 8) * size, dtype=np.int64)
    header[MATCHES], row = 0, 0
    while True:
        state = (partials.partitions, partials.records)
        views = [array for words in state for array in (words, words.view(np.float64))]
        row = matcher.run(row, offset, *given, header, *views, found, previous)
        if row == len(given[0]):
            return found[: int(header[MATCHES]) * size].reshape(-1, size)
        if row < 0:
            row = ~row
            grow(partials)
        else:
            found = np.concatenate([found, np.empty_like(found)])


def _key_numbers(matcher: Matcher, partials: Partials, attributes: Mapping[str, pa.Array], count: int) -> Words:
    """The partitions of rows; -1 where a key is null."""
    columns = [attributes[name] for name in matcher.pattern.partition]
    if len(columns) == 1 and (pa.types.is_string(columns[0].type) or pa.types.is_dictionary(columns[0].type)):
        return _text_key_numbers(partials, columns[0])
    missing: npt.NDArray[np.bool_] | None = None
    for column in columns:
        nulls = nulls_of(column)
        if nulls is not None:
            missing = nulls if missing is None else missing | nulls
    return partials.keys.numbers([words_of(column, partials.texts) for column in columns], missing, count)


def _text_key_numbers(partials: Partials, column: pa.Array) -> Words:
    """The partitions of rows by one text: each distinct text is looked up once."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    distinct = partials.texts.codes(encoded.dictionary.cast(pa.string()))
    numbers = partials.keys.numbers([distinct], None, len(distinct))
    if encoded.null_count == 0:
        places: Words = encoded.indices.to_numpy(zero_copy_only=False)
    else:
        numbers = np.append(numbers, -1)
        places = encoded.indices.fill_null(len(distinct)).to_numpy(zero_copy_only=False)
    return numbers[places]


def _column(
    column: Column, columns: Columns, count: int, texts: Texts
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The values of a column as the generated function takes them, and where they are null."""
    expression = column.expression
    if isinstance(expression, Attribute):
        values = columns[None, expression.name]
    else:
        asked = [(None, part.name) for part in walk(expression) if isinstance(part, Attribute)]
        values = one_chunk(evaluate(expression, {key: decoded(columns[key]) for key in asked}, count))
    nulls = nulls_of(values)
    words = floats_of(values) if column.is_real else words_of(values, texts)
    return words, np.zeros(count, dtype=np.bool_) if nulls is None else nulls


def _with_kept(matcher: Matcher, partials: Partials, ids: Words, attributes: Mapping[str, pa.Array]) -> pa.Table:
    """The rows remembered, then those of this step."""
    if not matcher.keeps_rows:
        return partials.kept
    names = matcher.kept.names[1:]
    now = pa.table([pa.array(ids), *(decoded(attributes[name]) for name in names)], schema=matcher.kept)
    return pa.concat_tables([partials.kept, now]).combine_chunks()


def _keep(matcher: Matcher, partials: Partials, previous: Words, rows: pa.Table) -> None:
    """Remember the rows of partial matches only."""
    live, counts = rows_held(matcher.layout, partials)
    partitions = partials.partitions.reshape(-1, matcher.layout.partition_size)
    held = np.empty(int(counts.sum()), dtype=np.int64)
    chains(previous, np.ascontiguousarray(partitions[live, LAST_ROW]), counts, held)
    partitions[live, LAST_ROW] = np.cumsum(counts) - 1
    partials.kept = rows.take(pa.array(held)).combine_chunks()


def _fields(pattern: Pattern, names: Sequence[str]) -> list[tuple[str, pa.DataType]]:
    types = {column.name: column.type for column in pattern.columns}
    return [(name, arrow_type(types[name])) for name in names]
