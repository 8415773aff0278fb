"""What tests of detection share: a small graph, fed batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from estream.event.detect import Step, step
from estream.event.graph import Graph, compile_graph
from estream.event.rows import batch_schema
from estream.event.segments import load, save
from estream.event.state import State, begin
from estream.testing import Row, plan_of, row

SECOND = 1_000_000


def graph_of(
    events: dict[str, dict[str, Any]], order: Literal["event_time", "arrival"] = "event_time", **attributes: Any
) -> Graph:
    """The graph of events whose leaves have attributes like these."""
    return compile_graph(plan_of(events, [Row("A", 0, 0, {"k": 1, "v": 1, **attributes})], list(events), order))


@dataclass
class Run:
    """A graph and its state."""

    graph: Graph
    state: State = field(init=False)

    def __post_init__(self) -> None:
        self.state = begin(self.graph)

    def batch(self, rows: Sequence[Row]) -> pa.Table:
        """Rows as the graph takes them."""
        schema = batch_schema(self.graph)
        own = {"event": [self.graph.event_code(one.event) for one in rows], "time": [one.time for one in rows]}
        columns: dict[str, list[Any]] = {**own, "id": [one.id for one in rows]}
        for name in schema.names[3:]:
            columns[name] = [one.attributes.get(name) for one in rows]
        return pa.table(columns, schema=schema)

    def feed(self, rows: Sequence[Row] | pa.Table, watermark: float, end: bool = False) -> Step:
        """One step; the watermark is in seconds."""
        batch = rows if isinstance(rows, pa.Table) else self.batch(rows)
        return step(self.graph, self.state, batch, round(watermark * SECOND), end)

    def reload(self, segments: dict[str, bytes]) -> dict[str, bytes]:
        """Write the state onto segments and go on with what they hold."""
        segments = save(self.graph, self.state).onto(segments)
        self.state, _ = load(self.graph, segments)
        return segments


def ids(detected: Step) -> list[list[int]]:
    """The ids of the constituents of each detection."""
    return [[part["id"] for part in one["constituents"]] for one in detected.detections.to_pylist()]


def at(text: str, number: int, **attributes: Any) -> Row:
    """A row with a key and a value unless others are given."""
    return row(text, number, **{"k": 1, "v": 1, **attributes})
