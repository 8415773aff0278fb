"""What the passes hand on: event definitions that turn into nodes step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from estream.errors import Problem
from estream.plan.model import Conjunct, Context, Leaf, Node, Pattern, Semantics, Subscription, Temporal
from estream.spec.checked import Checked, CheckedEvent
from estream.spec.event_expression import Operator, Span
from estream.spec.model import CompositeEvent
from estream.text import Text

Key: TypeAlias = tuple[str, ...]
"""Attributes whose values part the occurrences."""

INITIATED: frozenset[Operator] = frozenset({";", "not", "A", "A*", "P", "P*", "absent"})
"""Operators whose first operand is the initiator."""

TIMED: frozenset[Operator] = frozenset({"+", "absent", "P", "P*"})
"""Operators that wait for a time."""


@dataclass(frozen=True, slots=True)
class Use:
    """A named event where an expression uses it; `relay` is set where its occurrences are partitioned anew."""

    event: str
    span: Span = (0, 0)
    relay: tuple[tuple[str, Key], ...] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """An operator of an expression, with the conjuncts of the mask that are asked there."""

    operator: Operator
    operands: tuple[Part | Use, ...]
    duration: int | None = None
    count: int | None = None
    span: Span = (0, 0)
    conjuncts: tuple[Conjunct, ...] = ()


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaf events of an expression, named events looked through."""

    every: tuple[str, ...]
    """Those that stand in it, whether they can be constituents or not."""
    constituents: tuple[str, ...]
    """Those that can be constituents of its occurrences."""
    last: tuple[str, ...]
    """Those that can be the last constituent."""
    only_temporal: bool
    """True if there can be an occurrence whose constituents are all temporal."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A composite event in one context. `keys` gives each leaf of the expression, and each named event, its key."""

    event: CheckedEvent
    spec: CompositeEvent
    root: Part
    context: Context = "recent"
    semantics: Semantics = "interval"
    within: int | None = None
    keys: Mapping[str, Key] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The event it defines."""
        return self.event.name

    @property
    def text(self) -> Text:
        """The expression as written."""
        return self.spec.when

    def problem(self, message: str, span: Span | None = None, hint: str | None = None) -> Problem:
        """An error in the expression, or at a part of it."""
        offset, length = (span[0], span[1] - span[0]) if span else (None, 1)
        return self.text.problem(f"event '{self.name}': {message}", offset, length, hint)


Variant: TypeAlias = tuple[str, Context | None]
"""An event, in its own context (None) or in one that a rule asks for."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The plan while the passes work on it: each fills in its fields and adds the problems it finds."""

    checked: Checked
    observe: tuple[str, ...] = ()
    definitions: Mapping[Variant, Definition] = field(default_factory=dict)
    leaves_of: Mapping[str, Leaves] = field(default_factory=dict)
    """For every event the leaves in it."""
    wanted: tuple[Subscription, ...] = ()
    """Subscriptions whose nodes are not known yet."""
    nodes: tuple[Node, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    events: tuple[tuple[str, int], ...] = ()
    timers: tuple[int, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    temporals: tuple[Temporal, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    problems: tuple[Problem, ...] = ()

    def is_temporal(self, event: str) -> bool:
        """True for temporal primitive events, which belong to every partition and have no attributes."""
        return self.checked.events[event].kind == "temporal"


def parts(root: Part | Use) -> Iterator[Part]:
    """Every operator of an expression, the outermost first."""
    if isinstance(root, Part):
        yield root
        for operand in root.operands:
            yield from parts(operand)


def uses(root: Part | Use) -> Iterator[Use]:
    """Every place of an expression where a named event stands."""
    if isinstance(root, Use):
        yield root
    else:
        for operand in root.operands:
            yield from uses(operand)
