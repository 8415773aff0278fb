"""One detection as a table again: for expressions that are asked when its rule runs."""

from __future__ import annotations

import pyarrow as pa

from estream.event.rows import arrow_type
from estream.rule.detection import Detected
from estream.rule.layout import Layout


def table_of(layout: Layout, detected: Detected) -> pa.Table:
    """The detection as a table of one row, with the columns that detection gives."""
    fields = {one.field: arrow_type(one.type) for leaf in layout.leaves.values() for one in leaf}
    names = {event: {one.field: one.name for one in leaf} for event, leaf in layout.leaves.items()}
    members = {
        "event": pa.array([one.event for one in detected.constituents], pa.string()),
        "id": pa.array([one.id for one in detected.constituents], pa.int64()),
        "time": pa.array([one.microseconds for one in detected.constituents], pa.int64()),
    }
    for field, kind in fields.items():
        values = [one.attributes.get(names.get(one.event, {}).get(field, "")) for one in detected.constituents]
        members[field] = pa.array(values, kind)
    structs = pa.StructArray.from_arrays(list(members.values()), list(members))
    ticks = None if detected.ticks is None else list(detected.ticks)
    return pa.table(
        {
            "event": pa.array([detected.event]),
            "start": pa.array([detected.start]),
            "end": pa.array([detected.end]),
            "id": pa.array([detected.id]),
            "constituents": pa.LargeListArray.from_arrays(pa.array([0, len(structs)], pa.int64()), structs),
            "tick": pa.array([detected.tick], pa.int64()),
            "ticks": pa.array([ticks], pa.list_(pa.int64())),
            "context": pa.array([detected.context], pa.string()),
        }
    )
