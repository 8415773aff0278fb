"""Event detection in a test, in process and without Spark.

```python
from estream.testing import detect

assert detect("A ; B", context="chronicle", events="A1 A2 B3 B4") == ["A1 B3", "A2 B4"]
```

`events` are rows: `A1` is an occurrence of `A` at second 1. The full form gives rows with attributes, times and ids,
and `run` takes several definitions at once and gives every detection whole.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from estream.errors import EStreamError
from estream.event.detect import step
from estream.event.graph import Graph, compile_graph
from estream.event.rows import batch_schema
from estream.event.state import begin
from estream.plan.build import build
from estream.plan.model import Plan
from estream.spec.check import check
from estream.spec.reader import Read, parse_ceq

SECOND = 1_000_000
TYPES = {bool: "boolean", int: "bigint", float: "double", str: "string"}


@dataclass(frozen=True, slots=True)
class Row:
    """A primitive occurrence: `time` in microseconds; rows of one event with the same time and id are one."""

    event: str
    time: int
    id: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Detection:
    """A detected occurrence with the rows it is made of; `tick` and `ticks` are those of `P` and `P*`."""

    event: str
    start: int
    end: int
    id: int
    constituents: tuple[Row, ...]
    tick: int | None = None
    ticks: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """The constituents as `A1 B3`: event and second."""
        return " ".join(f"{row.event}{row.time / SECOND:g}" for row in self.constituents)


@dataclass(frozen=True, slots=True)
class Cuts:
    """How to feed the input: in `count` batches, shuffled with `seed` as far as the watermark allows it."""

    count: int = 1
    seed: int | None = None


def detect(when: str, *, events: str | Sequence[Row], cuts: Cuts = Cuts(), **options: Any) -> list[str]:
    """What one event expression detects, each detection as `A1 B3`, in order of its end.

    `options` are those of a composite event: `context`, `within`, `partition_by`, `semantics`, `mask`.
    """
    rows = _rows(events) if isinstance(events, str) else events
    return [str(one) for one in run({"E": {"when": when, **options}}, rows, ["E"], cuts)]


def run(
    definitions: Mapping[str, Mapping[str, Any]],
    rows: Sequence[Row],
    observe: Iterable[str],
    cuts: Cuts = Cuts(),
) -> list[Detection]:
    """The detections of the observed events over a bounded input, by (end, start, ids, event).

    `definitions` are events as a CEQ file has them. Names that are not defined are primitive events.
    """
    graph = compile_graph(plan_of(definitions, rows, observe))
    found = [one for batch in _steps(graph, rows, cuts) for one in _detections(graph, batch)]
    return sorted(found, key=lambda one: (one.end, one.start, [row.id for row in one.constituents], one.event))


def plan_of(definitions: Mapping[str, Mapping[str, Any]], rows: Sequence[Row], observe: Iterable[str]) -> Plan:
    """The plan of events over one stream whose attributes are those of the rows."""
    columns: dict[str, str] = {}
    for row in rows:
        for name, value in row.attributes.items():
            if value is not None:
                columns[name] = TYPES[type(value)]
            columns.setdefault(name, "bigint")
    names = {row.event for row in rows} | {
        name
        for one in definitions.values()
        for name in re.findall(r"[A-Za-z_]\w*", str(one.get("when", "")))
        if not re.fullmatch(r"(?i)or|and|not|absent|times|us|ms|s|min|h|d|seconds?|minutes?|hours?|days?", name)
    }
    source = {
        "streams": {
            "Rows": {
                "source": {"format": "memory"},
                "schema": {"ts": "timestamp", "row_id": "bigint", **columns},
                "time": "ts",
            }
        },
        "events": {
            **{name: {"on": "Rows", "id": ["row_id"]} for name in sorted(names - set(definitions))},
            **{name: dict(one) for name, one in definitions.items()},
        },
    }
    parsed = parse_ceq(json.dumps(source), "<test>", {})
    checked, problems = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    plan, more = build(checked, observe)
    errors = [one for one in (*parsed.problems, *problems, *more) if one.severity == "error"]
    if errors:
        raise EStreamError(errors)
    return plan


def _rows(text: str) -> list[Row]:
    """Rows from `A1 B3.5`: event and second; equal ids are avoided by numbering."""
    rows = []
    for number, word in enumerate(text.split(), start=1):
        match = re.fullmatch(r"([A-Za-z_]\w*?)(\d+(?:\.\d+)?)", word)
        if match is None:
            raise EStreamError(f"'{word}' is not an event and its second, such as A1 or B3.5")
        rows.append(Row(match[1], round(float(match[2]) * SECOND), number))
    return rows


def _steps(graph: Graph, rows: Sequence[Row], cuts: Cuts) -> Iterable[pa.Table]:
    """The detections of each step."""
    state = begin(graph)
    for batch, watermark in _batches(rows, cuts):
        yield step(graph, state, _table(graph, batch), watermark).detections
    yield step(graph, state, _table(graph, []), 0, end_of_input=True).detections


def _batches(rows: Sequence[Row], cuts: Cuts) -> Iterable[tuple[list[Row], int]]:
    """Batches, each with a watermark that no later row is older than."""
    left = list(rows)
    chance = random.Random(cuts.seed)
    if cuts.seed is not None:
        span = max((row.time for row in rows), default=0) - min((row.time for row in rows), default=0)
        delay = {id(row): chance.random() * span / 3 for row in left}
        left.sort(key=lambda row: row.time + delay[id(row)])
    places = sorted(chance.randrange(len(left) + 1) for _ in range(cuts.count - 1))
    for begin_at, end_at in zip((0, *places), (*places, len(left)), strict=True):
        following = min((row.time for row in left[end_at:]), default=None)
        if following is not None:
            yield left[begin_at:end_at], following
        else:
            yield left[begin_at:end_at], max((row.time for row in left), default=0)


def _table(graph: Graph, rows: Sequence[Row]) -> pa.Table:
    rows = [row for row in rows if row.event in graph.events]
    schema = batch_schema(graph)
    columns: list[list[Any]] = [
        [graph.event_code(row.event) for row in rows],
        [row.time for row in rows],
        [row.id for row in rows],
    ]
    for column in graph.columns:
        own = {"ts": "time", "row_id": "id"}.get(column.name)
        columns.append([getattr(row, own) if own else row.attributes.get(column.name) for row in rows])
    return pa.table(columns, schema=schema)


def _detections(graph: Graph, table: pa.Table) -> Iterable[Detection]:
    own = {"event", "time", "id", "ts", "row_id"}
    for one in table.to_pylist():
        yield Detection(
            one["event"],
            one["start"],
            one["end"],
            one["id"],
            tuple(
                Row(c["event"], c["time"], c["id"], {name: value for name, value in c.items() if name not in own})
                for c in one["constituents"]
            ),
            one["tick"],
            None if one["ticks"] is None else tuple(one["ticks"]),
        )
