"""The state of a stream operator as named segments of bytes; a save gives those that changed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping

import pyarrow as pa

from estream.errors import EStreamError
from estream.event.operator import Operator, OperatorState, begin
from estream.event.segment_format import decode_table, encode_table
from estream.event.segments import Saved

ROWS = 16_384
"""Rows of a table that stand in one segment: a small change writes a small segment."""
_META = "meta"


def save(operator: Operator, state: OperatorState) -> Saved:
    """Write what changed since the state was begun, loaded or saved before. The next save goes on from here."""
    buffer = state.buffer
    tables = {**state.kept.tables_by_name(), "waiting": buffer.waiting}
    facts = {
        "shape": operator.shape,
        "source": operator.queries[0].source,
        "watermark": buffer.watermark,
        "greatest": buffer.greatest,
        "counts": dict(buffer.counts),
        "numbers": state.kept.numbers,
        "lengths": {name: table.num_rows for name, table in tables.items()},
    }
    segments = {_META: encode_table(pa.table({}), facts)}
    for name, table in tables.items():
        for place in range(0, max(table.num_rows, 1), ROWS):
            segments[f"{name}/{place // ROWS}"] = encode_table(table.slice(place, ROWS), {})
    marks = {name: zlib.crc32(data) for name, data in segments.items()}
    changed = {name: data for name, data in segments.items() if state.saved.get(name) != marks[name]}
    removed = frozenset(state.saved) - frozenset(marks)
    state.saved = marks
    return Saved(changed, removed)


def load(operator: Operator, segments: Mapping[str, bytes]) -> OperatorState:
    """The state that the segments hold; with none at all that of an operator that has seen nothing."""
    state = begin(operator)
    if not segments:
        return state
    _, facts = decode_table(_META, segments[_META])
    if facts["shape"] != operator.shape:
        names = ", ".join(f"'{query.name}'" for query in operator.queries)
        raise EStreamError(f"the state of query {names} is that of another definition of it; it has to begin anew")
    tables = {name: _table(name, segments, length) for name, length in facts["lengths"].items()}
    state.kept.fill(tables, facts["numbers"])
    buffer = state.buffer
    buffer.waiting = _fitted(tables["waiting"], operator.source)
    buffer.watermark, buffer.greatest = facts["watermark"], facts["greatest"]
    buffer.counts.update(facts["counts"])
    state.saved = {name: zlib.crc32(data) for name, data in segments.items()}
    return state


def succeed(operator: Operator, predecessors: Iterable[Mapping[str, bytes]], watermark: int) -> OperatorState:
    """The state of an operator that begins where others are: it gets the rows of its source that wait there.

    The predecessors, as segments, are operators to which the same rows came. So those that read the same source have
    the same rows waiting. Where there is none, rows before the watermark are late.
    """
    state = begin(operator)
    buffer, source = state.buffer, operator.queries[0].source
    buffer.watermark = watermark
    for segments in predecessors:
        _, facts = decode_table(_META, segments[_META])
        if facts.get("source") == source:
            waiting = _table("waiting", segments, facts["lengths"]["waiting"])
            buffer.waiting = _fitted(waiting, operator.source)
            buffer.watermark, buffer.greatest = facts["watermark"], facts["greatest"]
    return state


def _fitted(rows: pa.Table, source: pa.Schema) -> pa.Table:
    """Rows with the columns that the source has now; one that it did not have is null."""
    columns = [
        rows.column(field.name)
        if field.name in rows.column_names and rows.schema.field(field.name).type == field.type
        else pa.nulls(rows.num_rows, field.type)
        for field in source
    ]
    return pa.table(columns, schema=source)


def _table(name: str, segments: Mapping[str, bytes], length: int) -> pa.Table:
    count = max(1, -(-length // ROWS))
    parts = [decode_table(f"{name}/{number}", segments[f"{name}/{number}"])[0] for number in range(count)]
    return pa.concat_tables(parts).replace_schema_metadata(None)
