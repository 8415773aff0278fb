"""Events that are new in a run begin at its watermark: nothing of the time before it is theirs."""

from __future__ import annotations

import json
from typing import Any

from estream.stream.detected import joined
from estream.stream.pack import Packed
from estream.stream.shard import spark_keys
from estream.testing import Row, plan_of
from tests.stream.sharded import MemoryChunks, Sharded

SECOND = 1_000_000
DELAY = 10
"""Seconds, of the stream in `estream.testing`, which says nothing else."""


def rows(*seconds: int) -> list[Row]:
    return [Row("A", second * SECOND, second, {"k": 1}) for second in seconds]


def reached(second: int) -> list[Packed]:
    """A mark of the stream that brings the watermark there."""
    time = (second + DELAY) * SECOND
    facts = {"rows": 1, "least": SECOND, "greatest": time}
    return [Packed(key, "mark", "Rows", json.dumps(facts).encode()) for key in spark_keys(1)]


def added(events: dict[str, Any]) -> list[tuple[str, int]]:
    """What is found of events that are added at second 50 and observed up to second 60, with their ends."""
    chunks: dict[tuple[int, int], MemoryChunks] = {}
    old = {"Old": {"when": "A"}}
    Sharded(plan_of(old, rows(0), ["Old"]), 1, "old", chunks).take(rows(1), reached(50))
    names = [name for name, one in events.items() if "when" in one]
    # A stage without routes keeps nothing.
    chunks = {key: kept for key, kept in chunks.items() if key[0] == 0}
    host = Sharded(plan_of({**old, **events}, rows(0), names), 1, "new", chunks)
    found = joined(host.take(rows(40, 55), reached(60)))
    return [(row["event"], row["end"] // SECOND) for row in found.to_pylist()]


def test_a_row_before_the_watermark_is_late_for_an_event_whose_rows_travel_by_a_key_that_is_new() -> None:
    assert added({"New": {"when": "times(2, A)", "partition_by": ["k"], "context": "chronicle"}}) == []
    assert added({"New": {"when": "A or (A ; A)", "partition_by": ["k"]}}) == [("New", 55)]


def test_a_temporal_event_that_is_new_begins_at_the_watermark() -> None:
    assert added({"Tick": {"every": "4 s"}, "New": {"when": "Tick or (A ; A)"}}) == [("New", 52), ("New", 56)]


def test_so_it_does_in_a_second_stage_that_had_nothing_to_do() -> None:
    events = {
        "Tick": {"every": "4 s"},
        "Keyed": {"when": "A ; A", "partition_by": ["k"]},
        "New": {"when": "Tick or (Keyed ; Tick)"},
    }
    assert added(events) == [("New", 52), ("New", 56)]
