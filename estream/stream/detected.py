"""Detections as they leave a query: one table per micro-batch in the contract's order, and lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from estream.plan.model import Plan

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def joined(tables: Iterable[pa.Table]) -> pa.Table:
    """All detections by (end, event, start, ids of the constituents), whichever shard they came from."""
    chosen = [table for table in tables if table.num_rows]
    if not chosen:
        return pa.table({})
    whole = pa.concat_tables([_plain(table) for table in chosen], promote_options="permissive")
    if whole.num_rows == 1:
        return whole
    return whole.take(pa.array(_order(whole)))


def _order(detections: pa.Table) -> list[int]:
    ends, events, starts = (detections.column(name).to_pylist() for name in ("end", "event", "start"))
    ids = [[row["id"] for row in rows] for rows in detections.column("constituents").to_pylist()]
    return sorted(range(len(ends)), key=lambda row: (ends[row], events[row], starts[row], ids[row]))


def _plain(table: pa.Table) -> pa.Table:
    """Names as text: dictionaries of different graphs do not go together."""
    place = table.schema.get_field_index("event")
    return table.set_column(place, "event", table.column("event").cast(pa.string()))


def to_lines(plan: Plan, detections: pa.Table) -> Iterator[str]:
    """One line of JSON per detection."""
    needed = {leaf.name: leaf.needed for leaf in plan.leaves}
    for row in detections.to_pylist():
        yield json.dumps(to_object(row, needed), ensure_ascii=False, default=_json)


def to_object(row: Mapping[str, Any], needed: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """A detection as JSON has it; of a constituent only the attributes that its event has."""
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
                "attributes": {name: one.get(name) for name in needed.get(one["event"], ())},
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


def _json(value: Any) -> Any:
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
