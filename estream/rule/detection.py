"""What a callback gets: the detection with its constituents by name, its times, and the key of the firing."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


def moment(microseconds: int) -> datetime:
    """The time of so many microseconds since the epoch, in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A constituent: one occurrence of a leaf event. Its attributes are attributes: `occurrence.car_id`."""

    event: str
    id: int
    microseconds: int
    attributes: Mapping[str, Any]

    @property
    def time(self) -> datetime:
        """When it occurred."""
        return moment(self.microseconds)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.attributes[name]
        except KeyError:
            there = ", ".join(self.attributes) or "no attributes"
            raise AttributeError(f"'{name}' is not an attribute of event '{self.event}', which has {there}") from None

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]


@dataclass(frozen=True, slots=True)
class Detected:
    """A detection as it is kept: times are microseconds since the epoch."""

    event: str
    context: str | None
    start: int
    end: int
    id: int
    constituents: tuple[Occurrence, ...]
    tick: int | None = None
    ticks: tuple[int, ...] | None = None

    def last(self, leaf: str) -> Occurrence | None:
        """The last occurrence of a leaf event, which the plain `Event.attribute` means."""
        return next((one for one in reversed(self.constituents) if one.event == leaf), None)


def _nowhere(event: str, attributes: Mapping[str, Any]) -> None:
    raise RuntimeError(f"event '{event}' cannot be raised here: the detection belongs to no running rule")


@dataclass(frozen=True, slots=True)
class Detection:
    """A detection as a callback sees it: `d.EImmobile.car_id`, `d.end`, `d.idempotency_key`, `d.raise_event(...)`.

    `d.EImmobile` is the last occurrence of the leaf event `EImmobile`; `d.all("EImmobile")` are all of them.
    """

    detected: Detected
    rule: str
    idempotency_key: str
    """The same whenever this action is tried again for this detection: for a sink that must not act twice."""
    raiser: Callable[[str, Mapping[str, Any]], None] = field(default=_nowhere, repr=False, compare=False)
    is_repeated: bool = False
    """Whether this action may have been tried before for this detection."""

    @property
    def event(self) -> str:
        """The event that was detected."""
        return self.detected.event

    @property
    def id(self) -> int:
        """The detection's id, a hash of the event, its end and its constituents."""
        return self.detected.id

    @property
    def start(self) -> datetime:
        """The least start of its parts."""
        return moment(self.detected.start)

    @property
    def end(self) -> datetime:
        """When it was detected, by the time of the stream."""
        return moment(self.detected.end)

    @property
    def constituents(self) -> tuple[Occurrence, ...]:
        """The primitive occurrences it is made of, in detection order."""
        return self.detected.constituents

    @property
    def tick(self) -> int | None:
        """The number of the tick, of an event that is a `P`."""
        return self.detected.tick

    @property
    def ticks(self) -> tuple[datetime, ...] | None:
        """The times of the ticks, of an event that is a `P*`."""
        return None if self.detected.ticks is None else tuple(map(moment, self.detected.ticks))

    def all(self, event: str) -> tuple[Occurrence, ...]:
        """Every occurrence of a leaf event, in detection order."""
        return tuple(one for one in self.constituents if one.event == event)

    def raise_event(self, event: str, **attributes: Any) -> None:
        """Raise an event: it enters the graph through its channel and can complete other events."""
        self.raiser(event, attributes)

    def __getitem__(self, event: str) -> Occurrence:
        found = self.detected.last(event)
        if found is None:
            there = ", ".join(dict.fromkeys(one.event for one in self.constituents)) or "no constituents"
            raise KeyError(f"'{event}' is not in this detection of '{self.event}', which has {there}")
        return found

    def __getattr__(self, name: str) -> Occurrence:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __str__(self) -> str:
        parts = ", ".join(f"{one.event}{dict(one.attributes)}" for one in self.constituents)
        return f"{self.event} at {self.end:%Y-%m-%d %H:%M:%S.%f} ({parts})"
