"""`detect`: the detections of a set of events over a bounded input (docs/semantics.md, sections 1 to 5).

Readings, where the contract leaves a choice:
- Constituents are put in order by (id, event name, time), one constituent after the other.
- An occurrence longer than W is refused before occurrences with the same constituents become one.
- Where such occurrences have the same start too, the `tick` or `ticks` of the one signalled first stay.
- A leaf that is never a constituent of a named event is null in a mask that is asked of that event's occurrences.
- `count(E)` counts places in the list of constituents: a primitive that is there twice counts twice.
- Neither an n of `not` or `absent`, nor an m of `A*`, nor a t that closes a window of `A` or `P`, is asked about W.
- `at` occurs even before the first row; `every` and `cron` begin strictly after it. All end at T, T included.
- The id of a temporal occurrence is 0.
- An event fed by one with an equal `partition_by` keeps its keys. One made of temporal events only is in every
  partition. Else the key is that of the last constituent that is not temporal.
- Rows that differ only in attributes are told apart by their text here, not by the hash of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from estream.spec.event_expression import Apply, EventExpression, Name
from estream.spec.event_parser import parse_event
from estream.text import Text
from tests.reference.masks import Conjuncts, place
from tests.reference.occurrences import Occurrence, Primitive, canonical, of_row
from tests.reference.operators import OPERATORS, Settings
from tests.reference.syntax import parse_mask
from tests.reference.temporal import instants

Key = tuple[Any, ...]
Definition = Mapping[str, Any]
Row = Mapping[str, Any]
TEMPORAL = ("at", "every", "cron")


def detect(
    events: Mapping[str, Definition],
    rows: Sequence[Row],
    observe: Sequence[str],
    end_of_input: bool = True,
    arrival: bool = False,
) -> list[dict[str, Any]]:
    """The detections of the observed events, in the form and order of the vectors.

    `events` are definitions as in the vectors (what one leaves out is the default), and temporal events: `at` and
    `every` in microseconds, or `cron` and `timezone`. Without `end_of_input` what is due after the last row is not
    there yet. With `arrival` rows are taken as they come.
    """
    run = Run(events, rows, arrival)
    found = [
        {
            "event": event,
            "start": one.start,
            "end": one.end,
            "ids": [primitive.id for primitive in one.constituents],
            "attrs": dict(one.attrs),
        }
        for event in observe
        for one, _ in run.detections(event)
        if end_of_input or one.end <= run.last
    ]
    return sorted(found, key=lambda one: (one["end"], one["start"], one["ids"], one["event"]))


class Run:
    """All events over all rows. A named event is detected whole before those that it feeds."""

    def __init__(self, events: Mapping[str, Definition], rows: Sequence[Row], arrival: bool = False) -> None:
        self.temporal = {name: event for name, event in events.items() if any(event.get(key) for key in TEMPORAL)}
        self.composite = {name: event for name, event in events.items() if name not in self.temporal}
        self.expressions = {name: parse_event(Text(event["when"])) for name, event in self.composite.items()}
        self.rows, self.arrival = rows, arrival
        self.detected: dict[str, list[tuple[Occurrence, Key]]] = {}

    @cached_property
    def first(self) -> int:
        """The time of the first row: before it no temporal event repeats."""
        times = [row["time"] for row in self.rows] or [0]
        return times[0] if self.arrival else min(times)

    @cached_property
    def last(self) -> int:
        """T, the end of the input."""
        return max((row["time"] for row in self.rows), default=0)

    @cached_property
    def primitives(self) -> dict[str, list[Occurrence]]:
        """The occurrences of every leaf: rows of one event with the same time and id are one."""
        if self.arrival:
            return self.arriving()
        rows = sorted(self.rows, key=lambda row: repr(sorted(row["attrs"].items())), reverse=True)
        unique = {
            (row["event"], row["time"], row["id"]): Primitive(row["id"], row["event"], row["time"], row["attrs"])
            for row in rows
        }
        leaves: dict[str, list[Occurrence]] = {}
        for primitive in unique.values():
            leaves.setdefault(primitive.event, []).append(of_row(primitive))
        return leaves

    def arriving(self) -> dict[str, list[Occurrence]]:
        """Each row is an epoch of its own, at its time or, if that has passed, at the last time seen."""
        leaves: dict[str, list[Occurrence]] = {}
        used = {name for expression in self.expressions.values() for name in names_in(expression)}
        now = min((row["time"] for row in self.rows), default=0)
        for turn, row in enumerate(self.rows, 1):
            if row["event"] in used:
                now = max(now, row["time"])
                primitive = Primitive(row["id"], row["event"], now, row["attrs"])
                leaves.setdefault(row["event"], []).append(of_row(primitive, turn))
        return leaves

    def detections(self, event: str) -> list[tuple[Occurrence, Key]]:
        """The occurrences of a composite event in all its partitions, each with its key."""
        if event not in self.detected:
            definition, expression = self.composite[event], self.expressions[event]
            top = expression if isinstance(expression, Apply) else Apply("or", (expression,))
            mask = parse_mask(definition["mask"]) if definition.get("mask") else None
            asked = place(mask, top, self.expressions)
            partitions = self.partitions(event, top)
            self.detected[event] = [
                (occurrence, key)
                for key, streams in partitions.items()
                for occurrence in self.stream(top, streams, settings_of(definition, self.last), asked)
            ]
        return self.detected[event]

    def stream(
        self,
        expression: EventExpression,
        named: Mapping[str, list[Occurrence]],
        settings: Settings,
        asked: Mapping[int, Conjuncts],
    ) -> list[Occurrence]:
        """The occurrences of an expression in one partition; `named` has those of the names in it."""
        if isinstance(expression, Name):
            return named.get(expression.name, [])
        operands = [self.stream(operand, named, settings, asked) for operand in expression.operands]
        operator = OPERATORS[expression.operator](expression, settings, asked.get(id(expression), Conjuncts()))
        return operator.run(operands)

    def partitions(self, event: str, top: Apply) -> dict[Key, dict[str, list[Occurrence]]]:
        """For each key of the event the occurrences of the names in its expression; temporal ones are in all."""
        found: dict[Key, dict[str, list[Occurrence]]] = {}
        names = set(names_in(top))
        everywhere = {name for name in names if self.is_temporal(name)}
        for name in names - everywhere:
            for occurrence, key in self.keyed(event, name):
                if None not in key:
                    found.setdefault(key, {}).setdefault(name, []).append(occurrence)
        if not self.composite[event].get("partition_by"):
            found.setdefault((), {})
        for name in everywhere:
            always = self.instants(name) if name in self.temporal else [one for one, _ in self.detections(name)]
            for streams in found.values():
                streams[name] = always
        return found

    def is_temporal(self, name: str) -> bool:
        """Whether an event is temporal, or made of temporal events only: then it is in every partition."""
        if name in self.composite:
            return all(map(self.is_temporal, names_in(self.expressions[name])))
        return name in self.temporal

    def keyed(self, event: str, name: str) -> Iterator[tuple[Occurrence, Key]]:
        """The occurrences of a name in the event's expression, with the key they have there."""
        by = self.composite[event].get("partition_by") or []
        if name not in self.composite:
            for occurrence in self.primitives.get(name, []):
                yield occurrence, key_of(occurrence, name, by)
            return
        alike = by == (self.composite[name].get("partition_by") or [])
        for occurrence, key in self.detections(name):
            yield occurrence, key if alike else key_of(occurrence, name, by)

    def instants(self, name: str) -> list[Occurrence]:
        """The occurrences of a temporal event up to T; their id is 0."""
        times = instants(self.temporal[name], self.first, self.last)
        return canonical(of_row(Primitive(0, name, time, temporal=True)) for time in times)


def settings_of(definition: Definition, last: int) -> Settings:
    """What the definition gives, else the defaults."""
    return Settings(
        definition.get("context") or "recent",
        definition.get("semantics") or "interval",
        definition.get("within_us"),
        last,
    )


def names_in(expression: EventExpression) -> Iterator[str]:
    """The names an expression uses."""
    if isinstance(expression, Name):
        yield expression.name
        return
    for operand in expression.operands:
        yield from names_in(operand)


def key_of(occurrence: Occurrence, name: str, by: Sequence[str] | Mapping[str, Sequence[str]]) -> Key:
    """The key of the last constituent that is not temporal; a map may have an entry for the composite's name."""
    if not by:
        return ()
    last = next((one for one in reversed(occurrence.constituents) if not one.temporal), None)
    if last is None:
        return (None,)
    if isinstance(by, Mapping):
        by = by[name] if name in by else by[last.event]
    return tuple(last.attrs.get(attribute) for attribute in by)
