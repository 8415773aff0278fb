"""What the passes hand on: event definitions that turn into nodes step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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

CONSTITUENTS: Mapping[Operator, tuple[int, ...]] = {
    "or": (0, 1),
    "and": (0, 1),
    ";": (0, 1),
    "not": (0, 2),
    "A": (0, 1),
    "A*": (0, 1, 2),
    "P": (0,),
    "P*": (0, 1),
    "+": (0,),
    "absent": (0,),
    "times": (0,),
}
"""Which operands give constituents to an occurrence."""

EVERY: Mapping[Operator, tuple[int, ...]] = dict.fromkeys(CONSTITUENTS, (0, 1, 2))

LAST: Mapping[Operator, tuple[int, ...]] = {
    **CONSTITUENTS,
    ";": (1,),
    "not": (2,),
    "A": (1,),
    "A*": (2,),
    "P*": (1,),
}
"""Which operands give the last constituent."""


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
    wanted: tuple[Subscription, ...] = ()
    """Subscriptions whose nodes are not known yet."""
    nodes: tuple[Node, ...] = ()
    subscriptions: tuple[Subscription, ...] = ()
    timers: tuple[int, ...] = ()
    leaves: tuple[Leaf, ...] = ()
    temporals: tuple[Temporal, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    problems: tuple[Problem, ...] = ()

    def constituents(self, part: Part | Use) -> tuple[str, ...]:
        """Leaf events that can be constituents of its occurrences."""
        return self._below(part, CONSTITUENTS)

    def standing(self, part: Part | Use) -> tuple[str, ...]:
        """Leaf events that stand anywhere in it, in named events too, whether they can be constituents or not."""
        return self._below(part, EVERY)

    def last(self, part: Part | Use) -> tuple[str, ...]:
        """Leaf events that can be the last constituent; where that may be a temporal one, every constituent."""
        found = self._below(part, LAST)
        return self.constituents(part) if any(map(self.is_temporal, found)) else found

    def is_temporal(self, event: str) -> bool:
        """True for temporal primitive events, which belong to every partition and have no attributes."""
        return self.checked.events[event].kind == "temporal"

    def _below(self, part: Part | Use, roles: Mapping[Operator, tuple[int, ...]]) -> tuple[str, ...]:
        if isinstance(part, Use):
            definition = self.definitions.get((part.event, None))
            return (part.event,) if definition is None else self._below(definition.root, roles)
        operands = (part.operands[i] for i in roles[part.operator] if i < len(part.operands))
        return once(leaf for operand in operands for leaf in self._below(operand, roles))


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


def once(names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once, in their order."""
    return tuple(dict.fromkeys(names))
