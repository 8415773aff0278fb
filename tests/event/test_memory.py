"""What is kept stays flat where `within` is given, and what waits for ever can be very much."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from estream.event.rows import batch_schema
from estream.event.segments import save
from estream.event.words import ITEMS
from tests.event.running import Run, graph_of

HOUR = 3_600_000_000
ROWS = 100_000


def hour_of_rows(running: Run, hour: int, event: str, count: int, keys: pa.Array | None = None) -> pa.Table:
    """Rows that are spread over an hour, each with a key of its own unless keys are given."""
    numbers = np.arange(hour * count, (hour + 1) * count)
    columns = {
        "event": np.full(count, running.graph.event_code(event)),
        "time": hour * HOUR + np.arange(count) * (HOUR // count),
        "id": numbers,
        "k": pc.cast(pa.array(numbers), pa.string()) if keys is None else keys,
    }
    schema = batch_schema(running.graph)
    nothing = {name: pa.nulls(count, schema.field(name).type) for name in schema.names if name not in columns}
    return pa.table({**columns, **nothing}).select(schema.names).cast(schema)


def kept(running: Run) -> dict[str, int]:
    """How much the state holds."""
    return {
        "rows": running.state.rows.count,
        "items": len(running.state.memory.used(ITEMS)),
        "partitions": running.state.partitions[0].keys.count,
        "texts": len(running.state.texts.values),
    }


def test_a_week_of_keys_that_fall_silent_stays_flat_with_within() -> None:
    events = {"E": {"when": "A ; B", "context": "chronicle", "partition_by": ["k"], "within": "1 h"}}
    running, segments = Run(graph_of(events, k="")), dict[str, bytes]()
    sizes = []
    for hour in range(7 * 24):
        count = ROWS // 20
        running.feed(hour_of_rows(running, hour, "A", count), watermark=(hour + 1) * 3600)
        if hour % 24 == 23:
            segments = save(running.graph, running.state).onto(segments)
            sizes.append((kept(running), sum(map(len, segments.values()))))
    (first, first_size), (last, last_size) = sizes[1], sizes[-1]
    assert max(last[name] / first[name] for name in first) < 3
    assert max(last.values()) < 7 * 24 * (ROWS // 20) // 2
    assert last_size < 3 * first_size


def test_rows_that_nothing_refers_to_are_forgotten() -> None:
    running = Run(graph_of({"E": {"when": "A ; B", "context": "recent"}}))
    keys = pa.array(np.ones(ROWS, dtype=np.int64))
    for hour in range(3):
        running.feed(hour_of_rows(running, hour, "A", ROWS, keys), watermark=(hour + 1) * 3600)
    assert kept(running)["rows"] == 1


def test_initiators_without_an_end_are_all_kept() -> None:
    running = Run(graph_of({"E": {"when": "A ; B", "context": "cumulative"}}))
    keys = pa.array(np.ones(ROWS, dtype=np.int64))
    for hour in range(3):
        running.feed(hour_of_rows(running, hour, "A", ROWS, keys), watermark=(hour + 1) * 3600)
    (found,) = running.feed(hour_of_rows(running, 3, "B", 1, keys[:1]), watermark=4 * 3600).detections["constituents"]
    assert len(found) == 3 * ROWS + 1
