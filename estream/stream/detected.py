"""Detections as they leave a query: one table per micro-batch in the contract's order, and lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from estream.plan.model import Column, Plan
from estream.stream.detected_order import order_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    """All detections by (end, event, start, ids of the constituents), whichever shard they came from."""
    chosen = [table for table in tables if table.num_rows]
    if not chosen:
        return pa.table({})
    whole = pa.concat_tables([_plain(table) for table in chosen], promote_options="permissive")
    if whole.num_rows == 1:
        return whole
    return whole.combine_chunks().take(pa.array(order_of(whole)))


def _plain(table: pa.Table) -> pa.Table:
    """Names as text: dictionaries of different graphs do not go together."""
    place = table.schema.get_field_index("event")
    return table.set_column(place, "event", table.column("event").cast(pa.string()))


def to_lines(plan: Plan, detections: pa.Table) -> Iterator[str]:
    """One line of JSON per detection."""
    if not detections.num_rows:
        return
    fields = detections.schema.field("constituents").type.value_type.names
    needed = {
        leaf.name: {column.name: field_of(fields, column) for column in leaf.columns if column.name in leaf.needed}
        for leaf in plan.leaves
    }
    for row in detections.to_pylist():
        yield json.dumps(to_object(row, needed), ensure_ascii=False, default=to_json_value)


def field_of(fields: Container[str], column: Column) -> str | None:
    """The field of a constituent that carries an attribute; None if none does."""
    apart = f"{column.name}:{column.type}"
    if apart in fields:
        return apart
    return column.name if column.name in fields and column.name not in ("event", "time", "id") else None


def to_object(row: Mapping[str, Any], needed: Mapping[str, Mapping[str, str | None]]) -> dict[str, Any]:
    """A detection as JSON has it; of a constituent only the attributes that its event has, by their fields."""
    made: dict[str, Any] = {
        "event": row["event"],
        "start": instant(row["start"]),
        "end": instant(row["end"]),
        "id": row["id"],
        "constituents": [
            {
                "event": one["event"],
                "id": one["id"],
                "time": instant(one["time"]),
                "attributes": {
                    name: None if field is None else one[field] for name, field in needed.get(one["event"], {}).items()
                },
            }
            for one in row["constituents"]
        ],
    }
    if row.get("tick") is not None:
        made["tick"] = row["tick"]
    if row.get("ticks") is not None:
        made["ticks"] = [instant(tick) for tick in row["ticks"]]
    return made


def instant(microseconds: int) -> str:
    """A time as people read it."""
    moment = EPOCH + timedelta(microseconds=microseconds)
    return moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds").replace("+00:00", "Z")


def to_json_value(value: Any) -> Any:
    """What stands in JSON for a value that JSON does not have."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case timedelta():
            return value / timedelta(microseconds=1)
        case Decimal():
            return float(value)
        case bytes():
            return value.hex()
    return str(value)
