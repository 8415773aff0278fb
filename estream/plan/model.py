"""What will run: the frozen plan that the hosts execute and `explain` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from estream.plan.stream_operator import StreamOperator
from estream.spec.event_expression import Operator
from estream.spec.expression import Expression
from estream.spec.types import DataType
from estream.text import Text

Context: TypeAlias = Literal["unrestricted", "recent", "chronicle", "continuous", "cumulative"]
Semantics: TypeAlias = Literal["interval", "point"]
Bound: TypeAlias = Literal["bounded", "bounded by within", "unbounded"]
NodeOperator: TypeAlias = Operator | Literal["leaf", "temporal", "relay", "pattern"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream or query."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class Leaf:
    """A primitive event: the rows of a query that its mask lets through."""

    name: str
    query: str
    mask: Expression | None
    mask_text: str | None
    id: tuple[str, ...]
    time: str
    columns: tuple[Column, ...]
    """Every column of the query, by which a default id is hashed."""
    needed: tuple[str, ...]
    """The columns the graph, the rules or an output ask for: all that travels."""
    raised: bool = False
    """True if rules or the service raise it: then `query` is its own name, and its time is when it was appended."""
    matched: bool = False
    """True if its occurrences are the matches of the pattern event of that name: no query gives them."""


@dataclass(frozen=True, slots=True)
class Temporal:
    """A temporal primitive event: exactly one of the three is given; `at` and `every` are microseconds."""

    name: str
    at: int | None = None
    every: int | None = None
    cron: Text | None = None
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression over the rows of a query, per partition (semantics, section 6)."""

    name: str
    query: str
    pattern: str
    define: tuple[tuple[str, Expression], ...]
    output: tuple[tuple[str, Expression], ...]
    partition: tuple[str, ...]
    within: int | None
    skip: Literal["past_last", "overlap"]
    id: tuple[str, ...]
    time: str
    columns: tuple[Column, ...]
    text: str = ""
    """The pattern as written, for people."""


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One conjunct of a composite mask, at the node where it is asked (semantics, section 2)."""

    kind: Literal[1, 2, 3]
    operands: tuple[int, ...]
    """Positions in the node's `operands` whose leaves it names; for kind 2 the initiator's first; empty for kind 3."""
    expression: Expression
    """Typed; every attribute is qualified by its leaf event."""
    text: str
    """For people: nothing secret in it."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the event graph. Nodes stand in topological order; `number` is the index in `Plan.nodes`.

    - `leaf`: occurrences of the primitive event `source`, keyed by `key`;
    - `temporal`: occurrences of the temporal event `source`, in every partition of its group;
    - `pattern`: matches of `pattern` over the rows of the leaf `operands[0]`, partitioned by `key`; read through
      relays, for its matches have other attributes than its rows;
    - `relay`: occurrences of the composite node `operands[0]` of another group, partitioned anew by `key`, read from
      their last constituent (that is not temporal), of which `keys` gives the attributes where leaves differ;
    - else a Snoop operator over `operands`, in the order of roles that `spec.event_expression.Apply` gives.
    A name alone (`when: A`) is an `or` with one operand.
    """

    number: int
    operator: NodeOperator
    operands: tuple[int, ...]
    signature: str
    group: int
    """Nodes of one group are partitioned alike: nothing but relays crosses."""
    stage: int
    """0 for groups fed by leaves only, else one more than the greatest stage a relay of the group reads."""
    source: str | None = None
    key: tuple[str, ...] = ()
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Of a relay: for each leaf event that can be the last constituent, its attributes."""
    context: Context = "recent"
    semantics: Semantics = "interval"
    within: int | None = None
    duration: int | None = None
    count: int | None = None
    conjuncts: tuple[Conjunct, ...] = ()
    bound: Bound = "bounded"
    leaves: tuple[str, ...] = ()
    """Names of the leaf events that can be constituents of its occurrences."""
    text: str = ""
    """The expression it stands for, for people."""
    pattern: Pattern | None = None
    """What a pattern node matches."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """An event someone listens to, and the node that detects it; `context` tells variants that rules asked for."""

    event: str
    node: int
    context: Context | None = None
    publish: str | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """A source of rows."""

    name: str
    format: str
    columns: tuple[Column, ...]
    time: str
    watermark: int
    idle_after: int | None


@dataclass(frozen=True, slots=True)
class Table:
    """Static rows that queries join with; `refresh` is in microseconds."""

    name: str
    format: str
    refresh: int | None


@dataclass(frozen=True, slots=True)
class Query:
    """A continuous query: SQL over streams and queries, or one of EStream's own operators."""

    name: str
    kind: Literal["sql", "modify", "window", "where", "unique", "first_unique", "cel"]
    reads: tuple[str, ...]
    columns: tuple[Column, ...]
    time: str | None
    stateful: bool
    text: str
    start: str | None = None
    stop: str | None = None
    publish: str | None = None
    operator: StreamOperator | None = None
    """What computes it, if it is one of EStream's own and the time of its rows is known."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition-action rule on an event."""

    name: str
    event: str
    context: Context | None
    condition: Expression | None
    condition_text: str | None
    actions: tuple[str, ...]
    priority: int
    coupling: Literal["immediate", "deferred", "detached"]
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that will run."""

    name: str
    order: Literal["event_time", "arrival"]
    streams: tuple[Stream, ...]
    queries: tuple[Query, ...]
    leaves: tuple[Leaf, ...]
    temporals: tuple[Temporal, ...]
    patterns: tuple[Pattern, ...]
    nodes: tuple[Node, ...]
    subscriptions: tuple[Subscription, ...]
    rules: tuple[Rule, ...]
    events: tuple[tuple[str, int], ...] = ()
    """Every composite event that is detected, in its own context, and its node."""
    timers: tuple[int, ...] = ()
    """Numbers of the nodes that act when a time is due."""
    tables: tuple[Table, ...] = ()
