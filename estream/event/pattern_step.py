"""`step` of a pattern that stands alone: one batch of rows, up to a watermark; and its state as bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from estream.errors import EStreamError
from estream.event.columns import one_chunk
from estream.event.order import release
from estream.event.pattern import Matcher, advance, begin_partials, settle
from estream.event.pattern_matches import Matches
from estream.event.pattern_segments import load_partials, save_partials
from estream.event.pattern_state import Partials
from estream.event.rows import arrow_type, column_name
from estream.event.segment_format import Facts, decode_table, encode_table
from estream.event.state import BEGINNING
from estream.event.words import FOREVER


@dataclass(slots=True)
class PatternState:
    """Partial matches, and rows that wait for the watermark."""

    partials: Partials
    waiting: pa.Table
    watermark: int = BEGINNING
    first: int | None = None
    greatest: int = BEGINNING
    counts: Counter[str] = field(default_factory=Counter)
    """`late`, `duplicate`, `null_time`, `null_key`: rows that took no part."""


@dataclass(frozen=True, slots=True)
class PatternStep:
    """What a step gives: matches, and the rows that came too late."""

    detections: pa.Table
    late: pa.Table


def batch_schema(matcher: Matcher) -> pa.Schema:
    """What a batch of rows looks like: event (always 0), time in microseconds, id, then the columns it asks for."""
    types = {column.name: column.type for column in matcher.pattern.columns}
    names = [(column_name(name, types[name], []), arrow_type(types[name])) for name in matcher.needed]
    return pa.schema([("event", pa.int64()), ("time", pa.int64()), ("id", pa.int64()), *names])


def begin(matcher: Matcher) -> PatternState:
    """The state of a pattern that has seen nothing."""
    return PatternState(begin_partials(matcher), batch_schema(matcher).empty_table())


def step(
    matcher: Matcher, state: PatternState, batch: pa.Table, watermark: int, end_of_input: bool = False
) -> PatternStep:
    """Take a batch in and give the matches that end before the watermark; with `end_of_input`, all there are.

    Columns of texts may be dictionary-encoded, which saves looking up every row's.
    """
    state.waiting = _encoded_as(state.waiting, batch)
    released = release(matcher, state, batch, FOREVER if end_of_input else watermark)
    attributes = {
        name: one_chunk(column) for name, column in zip(matcher.needed, released.attributes.columns, strict=True)
    }
    found = advance(matcher, state.partials, released.time, released.id, attributes)
    state.counts["null_key"] += found.null_keys
    settle(matcher, state.partials, state.watermark)
    return PatternStep(table_of(matcher, found), released.late)


def _encoded_as(waiting: pa.Table, batch: pa.Table) -> pa.Table:
    """What waits, its texts encoded where those of the batch are, so that rows are put together as they came."""
    fields = []
    for one in waiting.schema:
        given = batch.schema.field(one.name).type if one.name in batch.column_names else one.type
        text = pa.types.is_string(one.type) or pa.types.is_dictionary(one.type)
        encoded = pa.types.is_dictionary(given) and pa.types.is_string(given.value_type)
        fields.append(one.with_type(given if encoded else pa.string()) if text else one)
    schema = pa.schema(fields)
    return waiting if schema == waiting.schema else waiting.cast(schema)


def table_of(matcher: Matcher, found: Matches) -> pa.Table:
    """Matches as a table: event, start, end, id, the output as a struct, and the ids of the rows if asked for."""
    output = found.output
    columns = {
        "event": pa.array([matcher.pattern.name] * len(found), pa.string()),
        "start": pa.array(found.start),
        "end": pa.array(found.end),
        "id": pa.array(found.id),
        "output": pa.StructArray.from_arrays([one_chunk(column) for column in output.columns], output.column_names)
        if output.num_columns
        else pa.array([{}] * len(found), pa.struct([])),
    }
    if found.rows is not None:
        columns["rows"] = found.rows
    return pa.table(columns)


def save(matcher: Matcher, state: PatternState) -> dict[str, bytes]:
    """The whole state as named segments of bytes."""
    facts: Facts = {
        "watermark": state.watermark,
        "first": state.first,
        "greatest": state.greatest,
        "counts": dict(state.counts),
    }
    segments = save_partials(matcher, state.partials, state.watermark)
    return {**segments, "waiting": encode_table(state.waiting, facts)}


def load(matcher: Matcher, segments: dict[str, bytes]) -> PatternState:
    """The state that segments hold."""
    partials = load_partials(matcher, segments)
    if partials is None:
        raise EStreamError(f"the state is not one of pattern '{matcher.pattern.name}' as it is now")
    waiting, facts = decode_table("waiting", segments["waiting"])
    state = PatternState(partials, waiting.cast(batch_schema(matcher)))
    state.watermark, state.first, state.greatest = facts["watermark"], facts["first"], facts["greatest"]
    state.counts = Counter(facts["counts"])
    return state
