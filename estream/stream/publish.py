"""`publish:` of queries and events: what a micro-batch gives of them goes to channels, each row once.

The writer is the plan and the query or event, the version is the micro-batch: one that is run again adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estream.errors import EStreamError
from estream.plan.model import Column, Plan, Query, Subscription
from estream.stream.channel import Channel
from estream.stream.channel_schema import arrow_schema, arrow_type
from estream.stream.detected import field_of
from estream.stream.sink import Outcome

TIME: Final = "end"
"""The time column of a published event."""
_TIMESTAMP = pa.timestamp("us", "UTC")
_DETECTION = {"event": pa.string(), "id": pa.int64(), "start": _TIMESTAMP, TIME: _TIMESTAMP}


def open_publications(plan: Plan, channels: Path) -> None:
    """Make the channels that a plan publishes to; EStreamError tells one that is there with other columns."""
    for name, channel, schema, time in _publications(plan):
        try:
            Channel(channels / channel).create(schema, time)
        except EStreamError as error:
            raise EStreamError(f"'{name}' cannot be published: {error}") from None


def publish(plan: Plan, channels: Path, outcome: Outcome) -> None:
    """Append what a micro-batch gave of published queries and events."""
    for query in plan.queries:
        tables = [table for name, table in outcome.published if name == query.name]
        if query.publish is not None and tables:
            _append(plan, channels / query.publish, query.name, outcome.batch, pa.concat_tables(tables))
    for one in plan.subscriptions:
        if one.publish is not None and outcome.detections.num_rows:
            rows = event_rows(plan, one, outcome.detections)
            _append(plan, channels / one.publish, one.event, outcome.batch, rows)


def event_rows(plan: Plan, published: Subscription, detections: pa.Table) -> pa.Table:
    """Detections of an event as flat rows: of each leaf event the attributes of its last constituent."""
    is_own = pc.and_(pc.equal(detections.column("event"), published.event), pc.is_null(detections.column("context")))
    own = detections.filter(is_own)
    schema = _event_schema(plan, published)
    lists = own.column("constituents").combine_chunks()
    members, parents = lists.flatten(), pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)
    columns: list[Any] = [own.column("event"), own.column("id")]
    columns += [own.column(name).cast(_TIMESTAMP) for name in ("start", TIME)]
    for leaf, column in _leaf_columns(plan, published):
        mine = np.flatnonzero(pc.equal(members.field("event").cast(pa.string()), leaf).to_numpy(zero_copy_only=False))
        places = np.full(own.num_rows, -1, dtype=np.int64)
        places[parents[mine]] = mine
        field = field_of(members.type.names, column)
        values = members.field(field) if field else pa.nulls(len(members), arrow_type(column.type))
        columns.append(values.take(pa.array(places, mask=places < 0)).cast(arrow_type(column.type)))
    return pa.table(columns, schema=schema)


def _append(plan: Plan, path: Path, name: str, batch: int, rows: pa.Table) -> None:
    if rows.num_rows:
        Channel(path).append(rows, writer=f"{plan.name} {name}", version=batch)


def _publications(plan: Plan) -> Iterator[tuple[str, str, pa.Schema, str | None]]:
    """Name, channel, columns and time column of all that is published."""
    for query in plan.queries:
        if query.publish is not None:
            yield query.name, query.publish, _query_schema(query), query.time
    for one in plan.subscriptions:
        if one.publish is not None:
            yield one.event, one.publish, _event_schema(plan, one), TIME


def _query_schema(query: Query) -> pa.Schema:
    unknown = [column.name for column in query.columns if not column.type.is_known]
    if unknown:
        raise EStreamError(
            f"query '{query.name}' cannot be published: only Spark can tell the type of '{unknown[0]}'; cast it"
        )
    return arrow_schema({column.name: column.type for column in query.columns})


def _event_schema(plan: Plan, published: Subscription) -> pa.Schema:
    columns = [(f"{leaf}_{column.name}", arrow_type(column.type)) for leaf, column in _leaf_columns(plan, published)]
    return pa.schema([*_DETECTION.items(), *columns])


def _leaf_columns(plan: Plan, published: Subscription) -> Iterator[tuple[str, Column]]:
    leaves = plan.nodes[published.node].leaves
    for leaf in plan.leaves:
        if leaf.name in leaves:
            yield from ((leaf.name, column) for column in leaf.columns if column.name in leaf.needed)
