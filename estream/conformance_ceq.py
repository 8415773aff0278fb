"""Many conformance vectors as one CEQ file over one stream, so that a run of Spark serves them all.

The names of a vector get its number in front, which keeps their order. Times are moved so that the inputs of all
vectors end at the same time, which is then the end of the whole input.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from estream.errors import Place
from estream.event.rows import arrow_type
from estream.spec import event_expression, expression_text
from estream.spec.event_expression import EventExpression, Name
from estream.spec.event_parser import parse_event
from estream.spec.expression import Aggregate, Attribute, Expression, Operation
from estream.spec.expression_parser import parse_expression
from estream.spec.type_text import parse_type
from estream.testing import Row, columns_of
from estream.text import Mark, Text

STREAM = "Rows"
CASE, EVENT, ID, TIME = "case_number", "case_event", "row_id", "row_time"
"""Columns of the stream beside the attributes."""
CONSTITUENTS = "row_ids"
"""The output of a pattern that tells the rows of a match."""

Definition = Mapping[str, Any]
_NAME = re.compile(r"c(\d+)_(.*)")


@dataclass(frozen=True, slots=True)
class Case:
    """A vector as it is run: its events as a CEQ file has them, its rows, and what is observed.

    Events are named as in the vector. A pattern has an entry `on`: the event whose rows are matched.
    """

    events: Mapping[str, Definition]
    rows: Sequence[Row]
    observe: Sequence[str]

    @property
    def end(self) -> int:
        """The end of the input."""
        return max((row.time for row in self.rows), default=0)


@dataclass(frozen=True)
class Joined:
    """Cases in one CEQ file."""

    cases: Sequence[Case]

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns of the stream with their types."""
        own = {TIME: "timestamp", ID: "bigint", CASE: "int", EVENT: "string"}
        return {**own, **columns_of([row for case in self.cases for row in case.rows])}

    @cached_property
    def end(self) -> int:
        """The end of the whole input, to which the end of every case is moved."""
        return max((case.end for case in self.cases), default=0)

    def moved_by(self, number: int) -> int:
        """How much later the rows of a case are than they were."""
        return self.end - self.cases[number].end

    @property
    def observe(self) -> list[str]:
        """The events to detect."""
        return [named(number, name) for number, case in enumerate(self.cases) for name in case.observe]

    def document(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """The CEQ file; the rows come from `source`."""
        stream = {"source": dict(source), "schema": self.columns, "time": TIME}
        made: dict[str, Any] = {"version": 1, "streams": {STREAM: stream}, "queries": {}, "events": {}}
        for number, case in enumerate(self.cases):
            for name in _primitive(case):
                mask = f"{CASE} = {number} AND {EVENT} = '{name}'"
                made["events"][named(number, name)] = {"on": STREAM, "mask": mask, "id": [ID]}
            for name, one in case.events.items():
                if "pattern" in one:
                    query = {"from": STREAM, "where": f"{CASE} = {number} AND {EVENT} = '{one['on']}'"}
                    made["queries"][f"{named(number, name)}_rows"] = query
                made["events"][named(number, name)] = _renamed(number, name, one)
        return made

    def table(self) -> pa.Table:
        """The rows of all cases."""
        rows = [
            {**row.attributes, TIME: row.time + self.moved_by(number), ID: row.id, CASE: number, EVENT: row.event}
            for number, case in enumerate(self.cases)
            for row in case.rows
        ]
        schema = pa.schema([(name, arrow_type(parse_type(kind))) for name, kind in self.columns.items()])
        return pa.Table.from_pylist(rows, schema)

    def told(self, detections: Iterable[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        """For each case its detections, rows of the table that hosts give, in the vectors' form."""
        found: list[list[dict[str, Any]]] = [[] for _ in self.cases]
        for row in detections:
            number, name = of_case(row["event"])
            output = self.cases[number].events[name].get("output")
            found[number].append({"event": name, **_shown(row, self.moved_by(number), output)})
        return found


def named(number: int, name: str) -> str:
    """The name of an event of a case."""
    return f"c{number}_{name}"


def of_case(name: str) -> tuple[int, str]:
    """The case of an event and what it is called there."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"'{name}' is no event of a case")
    return int(match[1]), match[2]


def _primitive(case: Case) -> list[str]:
    """The events that come with the rows: those that expressions name and do not define."""
    composite = {name: one for name, one in case.events.items() if "when" in one}
    used = {leaf for name, one in composite.items() for leaf in event_expression.names(_when(name, one))}
    return sorted(used - case.events.keys())


def _when(name: str, definition: Definition) -> EventExpression:
    """The expression of an event, whose name says where a mistake in it is."""
    place = Place(f"event '{name}'", 1, 1, len(definition["when"]))
    return parse_event(Text(definition["when"], Mark(place, ((1, 1),))))


def _renamed(number: int, name: str, definition: Definition) -> dict[str, Any]:
    """A definition with the names of the file."""
    if "pattern" in definition:
        output = {**definition["output"], CONSTITUENTS: f"collect({ID})"}
        return {**definition, "on": f"{named(number, name)}_rows", "id": [ID], "output": output}
    changed = {**definition, "when": event_expression.to_text(_renamed_event(number, _when(name, definition)))}
    if isinstance(definition.get("partition_by"), Mapping):
        changed["partition_by"] = {named(number, leaf): key for leaf, key in definition["partition_by"].items()}
    if "mask" in definition:
        mask = parse_expression(Text(definition["mask"]))
        changed["mask"] = expression_text.to_text(_renamed_mask(number, mask))
    return changed


def _renamed_event(number: int, expression: EventExpression) -> EventExpression:
    if isinstance(expression, Name):
        return Name(named(number, expression.name))
    return replace(expression, operands=tuple(_renamed_event(number, each) for each in expression.operands))


def _renamed_mask(number: int, expression: Expression) -> Expression:
    match expression:
        case Attribute(str(event)):
            return replace(expression, event=named(number, event))
        case Aggregate("count", Attribute(None, event)) as count:
            return replace(count, operand=Attribute(None, named(number, event)))
        case Aggregate(_, operand) if operand is not None:
            return replace(expression, operand=_renamed_mask(number, operand))
        case Operation():
            return replace(expression, operands=tuple(_renamed_mask(number, each) for each in expression.operands))
    return expression


def _shown(row: Mapping[str, Any], moved: int, output: Mapping[str, str] | None) -> dict[str, Any]:
    span = {"start": row["start"] - moved, "end": row["end"] - moved}
    if output is not None:
        (match,) = row["constituents"]
        return {**span, "ids": match[CONSTITUENTS], "attrs": {name: match[name] for name in output}}
    attributes = {} if row.get("tick") is None else {"tick": row["tick"]}
    if row.get("ticks") is not None:
        attributes["ticks"] = [tick - moved for tick in row["ticks"]]
    return {**span, "ids": [one["id"] for one in row["constituents"]], "attrs": attributes}
