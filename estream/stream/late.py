"""Rows that came after the watermark had passed them: counted, and kept in a channel of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from estream.stream.channel import Channel
from estream.stream.channel_schema import arrow_schema
from estream.stream.detected import EPOCH, to_json_value
from estream.stream.occurrence import microseconds

MICROSECOND: Final = timedelta(microseconds=1)
LATE_ROWS: Final = "late_rows"
"""The name of their channel."""

SCHEMA: Final = arrow_schema({"ts": "timestamp", "event": "string", "record": "string"})
TABLE: Final = pa.schema([("ts", pa.int64()), ("event", pa.string()), ("record", pa.string())])


def late_rows(rows: pa.Table, time: str, names: Sequence[str] | str) -> pa.Table:
    """Late rows as they are kept: their time, the event or query they were for, and the row as JSON.

    `names` are the events behind the codes in the column `event`, or the one name of all rows.
    """
    made = []
    for row in rows.to_pylist():
        event = names if isinstance(names, str) else names[row.pop("event")]
        when = row[time] if isinstance(row[time], int) else (row[time] - EPOCH) // MICROSECOND
        made.append({"ts": when, "event": event, "record": json.dumps(row, default=to_json_value)})
    return pa.Table.from_pylist(made, TABLE)


def split_late(rows: pa.Table, time: str, since: int, codes: Sequence[int] | None = None) -> tuple[pa.Table, pa.Table]:
    """Rows that are in time, and those older than `since`; with `codes` only rows of these events can be late."""
    is_late = pc.less(microseconds(rows.column(time)), since)
    if codes is not None:
        is_late = pc.and_(is_late, pc.is_in(rows.column("event").combine_chunks(), pa.array(codes, pa.int64())))
    if not pc.any(is_late).as_py():
        return rows, rows.slice(0, 0)
    is_late = pc.fill_null(is_late, False)
    return rows.filter(pc.invert(is_late)), rows.filter(is_late)


def keep_late(channels: Path, tables: Iterable[pa.Table], writer: str, batch: int) -> None:
    """Append late rows to their channel; a repeated micro-batch appends none twice."""
    chosen = [table for table in tables if table.num_rows]
    if chosen:
        whole = pa.concat_tables(chosen)
        whole = whole.set_column(0, "ts", whole.column("ts").cast(pa.timestamp("us", "UTC")))
        channel = Channel(channels / LATE_ROWS).create(SCHEMA, time="ts")
        channel.append(whole.cast(SCHEMA), writer=writer, version=batch)
