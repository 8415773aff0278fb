"""Future queries in a live run: each writes its rows to a channel, and the file's own query reads that as a stream.

So events may be made of a query that has not begun. Rows that only carry a time, the beats, say how far the query is:
the time of the file's query goes up to its start, then with it, and past it when it is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from estream.scalar import Duration
from estream.spec import model
from estream.spec.checked import Checked, CheckedQuery
from estream.spec.types import BOOLEAN
from estream.stream.channel import Channel
from estream.stream.channel_schema import arrow_schema
from estream.text import Text

BEAT = "__beat"
"""The column of a channel that tells beats from rows."""


class FutureStream(model.Stream):
    """The channel of a future query, read as a stream."""


def on_channels(checked: Checked, channels: Mapping[str, str]) -> Checked:
    """The file with some of its queries as streams, each from the channel given by its name."""
    late = Duration.of(f"{lateness(checked)} us")
    queries = {
        name: _as_stream(query, channels[name], late) if name in channels else query
        for name, query in checked.queries.items()
    }
    return replace(checked, queries=queries)


def derived(checked: Checked) -> frozenset[str]:
    """The streams of a file that are channels of future queries."""
    return frozenset(str(name) for name, query in checked.queries.items() if isinstance(query.spec, FutureStream))


def lateness(checked: Checked) -> int:
    """How late a row of any stream of a file may come, in microseconds: rows of a query are in no better order."""
    usual = checked.ceq.settings.stream.watermark
    return max((stream.watermark or usual).microseconds for stream in checked.ceq.streams.values())


def future_channel(path: Path, query: CheckedQuery) -> Channel:
    """The channel of a future query, made if it is not there."""
    return Channel(path).create(arrow_schema({**query.columns, BEAT: BOOLEAN}))


def with_beats(rows: pa.Table, schema: pa.Schema, time: str, beats: Iterable[int]) -> pa.Table:
    """Rows as a channel keeps them, and beats of these times."""
    marked = rows.append_column(BEAT, pa.array([False] * rows.num_rows, pa.bool_()))
    told = [{time: beat, BEAT: True} for beat in beats]
    return pa.concat_tables([marked.select(schema.names).cast(schema), pa.Table.from_pylist(told, schema=schema)])


def _as_stream(query: CheckedQuery, channel: str, late: Duration) -> CheckedQuery:
    spec = FutureStream.model_construct(
        source=model.Source.model_construct(channel=Text(channel), format=None, options={}),
        columns={Text(name): Text(str(kind)) for name, kind in query.columns.items()},
        time=Text(query.time or ""),
        watermark=late,
        # Its beats say how far it is. The last one is thousands of years ahead.
        idle_after=Duration.of("3650000 days"),
        max_ahead=Duration.of("3650000 days"),
        description=None,
    )
    return replace(query, kind="stream", spec=spec, reads=(), stateful=False, where=None, select=(), having=None)
