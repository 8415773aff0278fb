"""A CEQ file whose names are resolved and whose expressions are typed: what `spec.check` gives to the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from estream.spec import model
from estream.spec.event_expression import EventExpression
from estream.spec.expression import Expression
from estream.spec.types import DataType

Columns: TypeAlias = Mapping[str, DataType]
"""Columns in order, by name."""


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A stream or query with its output columns; a stream has kind `stream`."""

    name: str
    kind: Literal["stream", "sql", "modify", "window", "where", "unique", "first_unique", "cel"]
    spec: model.Stream | model.Query
    reads: tuple[str, ...]
    columns: Columns
    time: str | None
    stateful: bool
    default_id: tuple[str, ...] = ()
    """Group keys and window of an aggregate query: what a row is known by; empty means all columns."""
    where: Expression | None = None
    """Asked of the output's rows."""
    select: tuple[tuple[str, Expression], ...] = ()
    having: Expression | None = None


@dataclass(frozen=True, slots=True)
class CheckedEvent:
    """An event with its expressions parsed and typed. Which fields are set follows from `kind`."""

    name: str
    kind: Literal["primitive", "composite", "pattern", "temporal", "raised"]
    spec: model.Event
    query: str | None = None
    columns: Columns | None = None
    """What `Event.attribute` may name: the query's columns, a pattern's output, a raised event's attributes."""
    mask: Expression | None = None
    when: EventExpression | None = None
    leaves: tuple[str, ...] = ()
    """Leaf events that a composite event's occurrences may contain, through named events too."""
    define: tuple[tuple[str, Expression], ...] = ()
    output: tuple[tuple[str, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedRule:
    """A rule with its condition typed."""

    name: str
    spec: model.Rule
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class Checked:
    """Every part that is right, in the order of definition; queries and events after those they read."""

    ceq: model.Ceq
    queries: Mapping[str, CheckedQuery]
    events: Mapping[str, CheckedEvent]
    rules: Mapping[str, CheckedRule]
