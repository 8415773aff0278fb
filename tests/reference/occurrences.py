"""Occurrences and their canonical order (docs/semantics.md, section 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Primitive:
    """A row of a leaf event, or one instant of a temporal event; its attributes do not tell it from others."""

    id: int
    event: str
    time: int
    attrs: Mapping[str, Any] = field(default_factory=dict, compare=False)
    temporal: bool = field(default=False, compare=False)

    @property
    def identity(self) -> tuple[int, str, int]:
        """By what constituents are compared."""
        return self.id, self.event, self.time


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An interval and what it is made of, in detection order."""

    start: int
    end: int
    constituents: tuple[Primitive, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict, compare=False)
    turn: int = 0
    """Which epoch of its end it belongs to: 0 is that of timers; in `order: arrival` every row has one of its own."""

    @property
    def epoch(self) -> tuple[int, int]:
        """The epochs are in this order."""
        return self.end, self.turn

    @property
    def identity(self) -> tuple[int, tuple[tuple[int, str, int], ...]]:
        """Two of one node with the same end and constituents are one."""
        return self.end, tuple(primitive.identity for primitive in self.constituents)


def of_row(primitive: Primitive, turn: int = 0) -> Occurrence:
    """A primitive occurrence is a point."""
    return Occurrence(primitive.time, primitive.time, (primitive,), turn=turn)


def canonical(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """By epoch, then by start, then by the ids of the constituents."""
    return sorted(occurrences, key=lambda one: (one.epoch, one.start, one.identity))


def without_duplicates(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """One for each list of constituents and end, that with the least start, in canonical order."""
    kept: dict[object, Occurrence] = {}
    for occurrence in canonical(occurrences):
        kept.setdefault(occurrence.identity, occurrence)
    return canonical(kept.values())


def constituents_of(parts: Iterable[Occurrence]) -> tuple[Primitive, ...]:
    """The constituents of the parts, one part after the other."""
    return tuple(primitive for part in parts for primitive in part.constituents)
