"""Event detection in a test, in process and without Spark.

```python
from estream.testing import detect

assert detect("A ; B", context="chronicle", events="A1 A2 B3 B4") == ["A1 B3", "A2 B4"]
```

`events` are rows: `A1` is an occurrence of `A` at second 1. The full form gives rows with attributes, times and ids,
and `run` takes several definitions at once and gives every detection whole. `match` does the same for one pattern.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from estream.errors import EStreamError
from estream.event import pattern_step
from estream.event.detect import step
from estream.event.graph import Graph, compile_graph
from estream.event.pattern import Matcher, compile_pattern
from estream.event.rows import batch_schema
from estream.event.segments import load, save
from estream.event.state import begin
from estream.plan.build import build
from estream.plan.model import Plan
from estream.plan.pattern import rows_event
from estream.spec.check import check
from estream.spec.event_expression import names
from estream.spec.event_parser import parse_event
from estream.spec.reader import Read, parse_ceq
from estream.text import Text

SECOND = 1_000_000
TYPES = {bool: "boolean", int: "bigint", float: "double", str: "string", datetime: "timestamp"}
Definitions: TypeAlias = Mapping[str, Mapping[str, Any]]


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
class Match:
    """A match of a pattern: the times of its first and last row, the ids of its rows, its output."""

    start: int
    end: int
    id: int
    rows: tuple[int, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cuts:
    """How to feed the input: in `count` batches, shuffled with `seed` as far as the watermark allows it."""

    count: int = 1
    seed: int | None = None


WHOLE = Cuts()


def row(text: str, id: int = 0, **attributes: Any) -> Row:
    """A row from `A1.5`, the event and the second: `row("A1.5", id=7, k="x")`."""
    match = re.fullmatch(r"([A-Za-z_]\w*?)(\d+(?:\.\d+)?)", text)
    if match is None:
        raise EStreamError(f"'{text}' is not an event and its second, such as A1 or B3.5")
    return Row(match[1], round(float(match[2]) * SECOND), id, attributes)


def detect(when: str, *, events: str | Sequence[Row], cuts: Cuts = WHOLE, **options: Any) -> list[str]:
    """What one event expression detects, each detection as `A1 B3`, in order of its end.

    `options` are those of a composite event: `context`, `within`, `partition_by`, `semantics`, `mask`.
    """
    rows = [row(word, number) for number, word in enumerate(events.split(), 1)] if isinstance(events, str) else events
    return [str(one) for one in run({"E": {"when": when, **options}}, rows, ["E"], cuts=cuts)]


def run(
    definitions: Definitions,
    rows: Sequence[Row],
    observe: Iterable[str],
    *,
    order: Literal["event_time", "arrival"] = "event_time",
    cuts: Cuts = WHOLE,
) -> list[Detection]:
    """The detections of the observed events over a bounded input, by (end, start, ids, event).

    `definitions` are events as a CEQ file has them. Names that are not defined are primitive events. The end of the
    input is the greatest time of a row, whether or not its event is used.
    """
    graph = compile_graph(plan_of(definitions, rows, observe, order))
    found = [one for batch in _steps(graph, rows, cuts) for one in _detections(batch)]
    return sorted(found, key=lambda one: (one.end, one.start, [part.id for part in one.constituents], one.event))


def plan_of(
    definitions: Definitions,
    rows: Sequence[Row],
    observe: Iterable[str],
    order: Literal["event_time", "arrival"] = "event_time",
) -> Plan:
    """The plan of events over one stream whose attributes are those of the rows."""
    primitive = ({one.event for one in rows} | _names(definitions)) - set(definitions)
    source = {
        "order": order,
        "streams": {
            "Rows": {
                "source": {"format": "memory"},
                "schema": {"ts": "timestamp", "row_id": "bigint", **columns_of(rows)},
                "time": "ts",
            }
        },
        "events": {
            **{name: {"on": "Rows", "id": ["row_id"]} for name in sorted(primitive)},
            **{name: dict(one) for name, one in definitions.items()},
        },
    }
    wanted = tuple(observe)
    plan = _planned(source, wanted)
    return replace(plan, subscriptions=tuple(one for one in plan.subscriptions if one.event in wanted))


def _planned(source: Mapping[str, Any], wanted: Sequence[str]) -> Plan:
    """The plan of a CEQ file; its errors are raised."""
    parsed = parse_ceq(json.dumps(source), "<test>", {})
    checked, problems = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    plan, more = build(checked, wanted)
    errors = [one for one in (*parsed.problems, *problems, *more) if one.severity == "error"]
    if errors:
        raise EStreamError(errors)
    return plan


def match(
    pattern: str, *, define: Mapping[str, str], rows: Sequence[Row], cuts: Cuts = WHOLE, **options: Any
) -> list[Match]:
    """The matches of a pattern over rows of one stream, by (end, start, ids of the rows).

    `options` are those of a pattern event: `output`, `partition_by`, `within`, `skip`. The time of a row is its `ts`.
    """
    event = {"on": "Rows", "id": ["row_id"], "pattern": pattern, "define": dict(define), **options}
    columns = columns_of(rows)
    time = "row_time" if "ts" in columns else "ts"
    schema = {time: "timestamp", "row_id": "bigint", **columns}
    stream = {"source": {"format": "memory"}, "schema": schema, "time": time}
    plan = _planned({"streams": {"Rows": stream}, "events": {"M": event}}, ["M"])
    matcher = compile_pattern(plan.patterns[0], with_rows=True)
    found = [one for table in _pattern_steps(matcher, rows, cuts) for one in table.to_pylist()]
    made = [Match(one["start"], one["end"], one["id"], tuple(one["rows"]), one["output"]) for one in found]
    return sorted(made, key=lambda one: (one.end, one.start, one.rows))


def _pattern_steps(matcher: Matcher, rows: Sequence[Row], cuts: Cuts) -> Iterator[pa.Table]:
    """The matches of each step; between steps the state becomes bytes and is read back."""
    schema, state = pattern_step.batch_schema(matcher), pattern_step.begin(matcher)
    own = {"row_id": "id", matcher.pattern.time: "time"}

    def table(batch: Sequence[Row]) -> pa.Table:
        columns: list[list[Any]] = [[0 for _ in batch], [one.time for one in batch], [one.id for one in batch]]
        for name in matcher.needed:
            columns.append([getattr(one, own[name]) if name in own else one.attributes.get(name) for one in batch])
        return pa.table(columns, schema=schema)

    for batch, watermark in _batches(rows, cuts):
        yield pattern_step.step(matcher, state, table(batch), watermark).detections
        state = pattern_step.load(matcher, pattern_step.save(matcher, state))
    yield pattern_step.step(matcher, state, table([]), 0, end_of_input=True).detections


def _names(definitions: Definitions) -> set[str]:
    """The events that expressions name; what is wrong with an expression is told when all is checked."""
    found: set[str] = set()
    for one in definitions.values():
        with suppress(EStreamError):
            found.update(names(parse_event(Text(str(one["when"])))) if "when" in one else ())
    return found


def columns_of(rows: Sequence[Row]) -> dict[str, str]:
    """The attributes of rows and their types; an attribute that is always null is a bigint."""
    kinds: dict[str, set[type]] = {}
    for one in rows:
        for name, value in one.attributes.items():
            kinds.setdefault(name, set()).update(() if value is None else (type(value),))
    return {name: _column_type(name, found) for name, found in kinds.items()}


def _column_type(name: str, kinds: set[type]) -> str:
    if kinds == {int, float}:
        return "double"
    if len(kinds) > 1 or not kinds <= TYPES.keys():
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise EStreamError(f"attribute '{name}' is {found}; use one of bool, int, float, str, datetime")
    return TYPES[kinds.pop()] if kinds else "bigint"


def _steps(graph: Graph, rows: Sequence[Row], cuts: Cuts) -> Iterator[pa.Table]:
    """The detections of each step; between steps the state becomes bytes and is read back."""
    state, segments = begin(graph), dict[str, bytes]()
    last = max((one.time for one in rows), default=0)
    for batch, watermark in _batches(rows, cuts):
        yield step(graph, state, _table(graph, batch), watermark, first=_first(graph, rows, watermark)).detections
        segments = save(graph, state).onto(segments)
        state, _ = load(graph, segments)
    yield step(graph, state, _table(graph, []), last, end_of_input=True, first=_first(graph, rows, last + 1)).detections


def _first(graph: Graph, rows: Sequence[Row], watermark: int) -> int | None:
    """The time of the first row, if the watermark has passed it."""
    if graph.arrival:
        return rows[0].time if rows else None
    return min((one.time for one in rows if one.time < watermark), default=None)


def _batches(rows: Sequence[Row], cuts: Cuts) -> Iterator[tuple[list[Row], int]]:
    """Batches, each with a watermark that no later row is older than."""
    left = list(rows)
    chance = random.Random(cuts.seed or 0)
    if cuts.seed is not None:
        span = max((one.time for one in rows), default=0) - min((one.time for one in rows), default=0)
        delay = {id(one): chance.random() * span / 3 for one in left}
        left.sort(key=lambda one: one.time + delay[id(one)])
    places = sorted(chance.randrange(len(left) + 1) for _ in range(cuts.count - 1))
    last = max((one.time for one in left), default=0)
    for begins, ends in zip((0, *places), (*places, len(left)), strict=True):
        yield left[begins:ends], min((one.time for one in left[ends:]), default=last)


def _table(graph: Graph, rows: Sequence[Row]) -> pa.Table:
    """Rows as occurrences of their events, and as rows of patterns, which match all of them."""
    matched = [graph.event_code(rows_event(node.pattern.name)) for node in graph.nodes if node.pattern is not None]
    given = [(graph.event_code(one.event), one) for one in rows if one.event in graph.events]
    given += [(code, one) for code in matched for one in rows]
    rows = [one for _, one in given]
    columns: list[list[Any]] = [
        [code for code, _ in given],
        [one.time for one in rows],
        [one.id for one in rows],
    ]
    for column in graph.columns:
        own = {"ts": "time", "row_id": "id"}.get(column.name)
        columns.append([getattr(one, own) if own else one.attributes.get(column.name) for one in rows])
    return pa.table(columns, schema=batch_schema(graph))


def _detections(table: pa.Table) -> Iterator[Detection]:
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
