"""What rules ask of the history: the records, and the protocol of the store that keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from estream.rule.detection import Detected

if TYPE_CHECKING:
    from estream.rule.layout import Layout

State = Literal["pending", "running", "done", "failed", "dead", "throttled", "suppressed"]
Coupling = Literal["immediate", "deferred", "detached"]
COUPLINGS: tuple[Coupling, ...] = ("immediate", "deferred", "detached")


class StoreAway(Exception):
    """The database cannot be reached for now: what was asked can be asked again."""


class StoreStopped(Exception):
    """The database takes no more, and people have to do something: the message says what."""


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """A rule as the history knows it."""

    name: str
    version: str
    definition: str
    condition: str | None
    event: str
    context: str | None
    priority: int
    coupling: Coupling


@dataclass(frozen=True, slots=True)
class NewFiring:
    """A firing to be recorded; one that is throttled or suppressed never runs."""

    rule: str
    state: State
    partition: str | None
    throttles: bool = False
    """Whether it begins a time in which its partition is throttled."""


@dataclass(frozen=True, slots=True)
class StoredFiring:
    """A firing that was recorded before, with what is needed to run it."""

    rule: str
    detected: Detected
    state: State
    partition: str | None
    step: int
    """Actions that are done."""
    attempts: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one action: when it began and how long it took in microseconds, and how it failed, if it did."""

    number: int
    action: int
    started: int
    duration: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Raised:
    """An event that an action raised: at which time, and how deep in a cascade."""

    event: str
    time: int
    depth: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a firing."""

    rule: str
    detection: int
    state: State
    step: int
    attempts: int
    due: int | None = None
    """When it is tried again, in microseconds of the clock."""
    error: str | None = None
    tried: tuple[Attempt, ...] = ()
    raised: tuple[Raised, ...] = ()
    fired: tuple[str, int] | None = None
    """Partition and end that throttle from now on, where that is decided when the rule runs."""


Records = Callable[[], Iterator[tuple[Detected, Sequence[NewFiring]]]]
"""Gives the new detections in order with their firings; may be asked again after a failure."""


class Store(Protocol):
    """The history of one CEQ file. Every method may raise StoreAway and StoreStopped."""

    def declare(self, rules: Sequence[RuleRecord], layout: Layout) -> None:
        """Make the rules and their versions known; called once, before anything else.

        StoreStopped if another process runs the file with this history.
        """

    def known(self, event: str, context: str | None, ids: Sequence[int]) -> set[int]:
        """Which detections of an event are recorded already."""

    def record(self, batch: int, records: Records) -> None:
        """Record detections and firings in one transaction."""

    def finish(self, started: Sequence[tuple[str, int]], outcomes: Sequence[Outcome]) -> None:
        """Record in one transaction which firings run (rule, detection), then what became of others."""

    def unfinished(self, coupling: Coupling, after: int, limit: int) -> Sequence[tuple[int, StoredFiring]]:
        """Firings that were recorded and neither ended nor wait for a retry, with their numbers, by number."""

    def due(self, now: int, limit: int) -> Sequence[StoredFiring]:
        """Failed firings that are due for another attempt, the longest due first."""

    def next_due(self) -> int | None:
        """When the next failed firing is due."""

    def last_fired(self, rule: str, partitions: Sequence[str]) -> Mapping[str, int]:
        """The end of the detection that each partition of a throttled rule last fired for."""

    def depth(self, event: str, time: int) -> int:
        """How deep in a cascade a raised event was raised; 0 if no rule raised it."""

    def count(self, batch: int, counts: Iterable[tuple[str, str, int]]) -> None:
        """Record for a micro-batch how many rows of a source were late or dead letters: (source, kind, rows)."""

    def close(self) -> None:
        """Let another process run the file."""
