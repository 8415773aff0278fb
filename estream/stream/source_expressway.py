"""A simulated expressway: what each car reports every 30 seconds, and the accidents that truly happened.

Every row follows from the seed and its number alone, so it is the same whatever was asked for before. A car slot has
one trip after the other, each a car of its own. Some trips end in a stop: an accident stays in its lane and blocks the
road behind it, a breakdown moves to the shoulder (lane 3) and blocks nothing. Jams without a cause block the road too.
Cars that come up to the queue before a blocked place slow down until they are past it or the road is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

REPORT_SECONDS: Final = 30
ROAD_MILES: Final = 100.0
SHOULDER: Final = 3
ACCIDENT, BREAKDOWN, JAM = 1, 2, 3
_SHORTEST_TRIP, _TRIP_SPREAD = 40, 60
"""In reports."""
_BLOCKED_MILES: Final = 2.0
_HOUR: Final = 3600
_LONGEST_TRIP: Final = (_SHORTEST_TRIP + _TRIP_SPREAD) * REPORT_SECONDS
_LONGEST_BLOCK: Final = 15 * 60


@dataclass(frozen=True, slots=True)
class Trips:
    """One car's way along the road per element; distances count in the direction of travel."""

    slot: Numbers
    number: Numbers
    car: Numbers
    begin: Floats
    """In seconds."""
    way: Numbers
    direction: Numbers
    lane: Numbers
    speed: Floats
    """In miles per second."""
    entry: Floats
    """In miles."""
    kind: Numbers
    """0, or what happens to the car."""
    event: Floats
    """When it happens, in seconds."""
    place: Floats
    """Where it happens, in miles."""
    over: Floats
    """When the road is free again, in seconds."""

    def take(self, chosen: npt.NDArray[np.bool_] | Numbers) -> Trips:
        """Some of the trips."""
        return Trips(*(getattr(self, name)[chosen] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Reports:
    """What cars report, one element per row, in order of time."""

    second: Numbers
    car: Numbers
    speed: Floats
    """In miles per hour."""
    way: Numbers
    lane: Numbers
    direction: Numbers
    position: Floats
    """In miles from the beginning of the road."""


@dataclass(frozen=True)
class Expressway:
    """The road and its traffic: so many cars at any time, on so many ways; `stops` is the share of each incident."""

    seed: int
    cars: int
    ways: int = 1
    stops: float = 0.01

    def reports(self, first: int, end: int) -> Reports:
        """The rows from number `first` on, before `end`."""
        per_hour = self.cars * (_HOUR // REPORT_SECONDS)
        cuts = [first, *range((first // per_hour + 1) * per_hour, end, per_hour), end]
        parts = [self._reports(*piece) for piece in pairwise(cuts)]
        return Reports(*(np.concatenate([getattr(part, name) for part in parts]) for name in Reports.__slots__))

    def accidents(self, first: int, end: int) -> Trips:
        """The accidents that happen from second `first` on, before `end`, in order of time."""
        hours = range(first // _HOUR, (max(end, 1) - 1) // _HOUR + 1)
        found = [self.incidents(hour) for hour in hours]
        wanted = [
            trips.take((trips.kind == ACCIDENT) & (first <= trips.event) & (trips.event < end)) for trips in found
        ]
        whole = _joined(wanted) if wanted else self.incidents(0).take(np.zeros(0, np.int64))
        return whole.take(np.lexsort((whole.car, whole.event)))

    def second_of(self, row: int) -> int:
        """The second of a row."""
        cycle, place = divmod(row, self.cars)
        return int(cycle * REPORT_SECONDS + self._phase[self._order[place]])

    def incidents(self, hour: int) -> Trips:
        """The trips to which something happens in an hour of the simulation."""
        return _incidents(self, hour)

    @cached_property
    def _slots(self) -> Numbers:
        return np.arange(self.cars, dtype=np.int64)

    @cached_property
    def _phase(self) -> Numbers:
        return (self._chance(1, self._slots) * REPORT_SECONDS).astype(np.int64)

    @cached_property
    def _order(self) -> Numbers:
        return np.argsort(self._phase, kind="stable")

    @cached_property
    def _duration(self) -> Numbers:
        return (_SHORTEST_TRIP + (self._chance(2, self._slots) * _TRIP_SPREAD).astype(np.int64)) * REPORT_SECONDS

    @cached_property
    def _shift(self) -> Numbers:
        return (self._chance(3, self._slots) * self._duration).astype(np.int64)

    def _chance(self, purpose: int, slot: Numbers, number: Numbers | int = 0) -> Floats:
        """A number in [0, 1) that follows from the seed, what it is for, a slot and a count."""
        mixed = _mix(np.uint64((self.seed + purpose * 0x9E3779B97F4A7C15) % 2**64))
        mixed = _mix(mixed ^ slot.astype(np.uint64))
        mixed = _mix(mixed ^ (np.asarray(number).astype(np.uint64) + np.uint64(0xD1B54A32D192ED03)))
        made: Floats = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return made

    def _trip_at(self, slot: Numbers, second: Numbers) -> Numbers:
        trip: Numbers = (second + self._shift[slot]) // self._duration[slot]
        return trip

    def trips(self, slot: Numbers, number: Numbers) -> Trips:
        """The trips with these numbers of these slots."""
        duration = self._duration[slot].astype(np.float64)
        begin = (number * self._duration[slot] - self._shift[slot]).astype(np.float64)
        lane = (self._chance(12, slot, number) * 3).astype(np.int64)
        speed = (50.0 + 6.0 * lane + 10.0 * self._chance(13, slot, number)) / _HOUR
        entry = self._chance(14, slot, number) * (ROAD_MILES - speed * duration)
        kind = np.searchsorted(np.arange(1, 4) * self.stops, self._chance(15, slot, number), "right")
        after = (0.2 + 0.4 * self._chance(16, slot, number)) * duration
        blocked = 240.0 + (_LONGEST_BLOCK - 240.0) * self._chance(17, slot, number)
        return Trips(
            slot=slot,
            number=number,
            car=number * self.cars + slot,
            begin=begin,
            way=(self._chance(10, slot, number) * self.ways).astype(np.int64),
            direction=(self._chance(11, slot, number) * 2).astype(np.int64),
            lane=lane,
            speed=speed,
            entry=entry,
            # Before the simulation begins nothing happens.
            kind=np.where((kind < 3) & (begin + after >= 0), kind + 1, 0).astype(np.int64),
            event=begin + after,
            place=entry + speed * after,
            over=begin + after + blocked,
        )

    def _reports(self, first: int, end: int) -> Reports:
        rows = np.arange(first, end, dtype=np.int64)
        slot = self._order[rows % self.cars]
        second = (rows // self.cars) * REPORT_SECONDS + self._phase[slot]
        trips = self.trips(slot, self._trip_at(slot, second))
        along, speed = self._motion(trips, second.astype(np.float64))
        position: Floats = np.where(trips.direction == 0, along, ROAD_MILES - along)
        noise = 1.0 + 0.02 * (2.0 * self._chance(20, slot, second) - 1.0)
        stands = (trips.kind == BREAKDOWN) & (trips.event <= second) & (second < trips.over)
        return Reports(
            second=second,
            car=trips.car,
            speed=np.round(speed * _HOUR * noise, 1),
            way=trips.way,
            lane=np.where(stands, SHOULDER, trips.lane),
            direction=trips.direction,
            position=np.round(position, 3),
        )

    def _motion(self, trips: Trips, second: Floats) -> tuple[Floats, Floats]:
        """How far along each car is at its second, and how fast."""
        if not second.size:
            return second, second
        stops = (trips.kind == ACCIDENT) | (trips.kind == BREAKDOWN)
        traffic = _Traffic(trips.entry.copy(), trips.begin.copy(), np.full(second.size, np.nan), trips.speed.copy())
        hours = range(int(second.min() - _LONGEST_TRIP - _LONGEST_BLOCK) // _HOUR, int(second.max()) // _HOUR + 1)
        blocks = _joined([self.incidents(hour) for hour in hours])
        blocks = blocks.take(blocks.kind != BREAKDOWN)
        for each in np.lexsort((blocks.event, blocks.place)):
            block = blocks.take(each[None])
            near = (trips.way == block.way) & (trips.direction == block.direction) & ~stops
            near &= (second > block.event) & (trips.begin < block.over) & (trips.car != block.car)
            chosen = np.flatnonzero(near)
            slowness = 0.15 + 0.4 * self._chance(30, trips.car[chosen], block.car)
            traffic.slow_down(chosen, trips.speed, second, block, slowness)
        moved = np.where(np.isnan(traffic.at), traffic.place + trips.speed * (second - traffic.since), traffic.at)
        halted = np.clip(np.minimum(second, trips.over) - trips.event, 0.0, None)
        free = trips.entry + trips.speed * (second - trips.begin - halted)
        standing = stops & (trips.event <= second) & (second < trips.over)
        along = np.where(stops, np.where(standing, trips.place, free), moved)
        return along, np.where(standing, 0.0, traffic.speed)


@dataclass(slots=True)
class _Traffic:
    """Cars on their way past blocked places: where each was when it was last free to go."""

    place: Floats
    since: Floats
    at: Floats
    """Where a car is that is slowed down at the time it is asked about; not a number for the others."""
    speed: Floats

    def slow_down(self, cars: Numbers, free: Floats, second: Floats, block: Trips, slowness: Floats) -> None:
        """Take the chosen cars past one blocked place."""
        cars, slowness = cars[settled := np.isnan(self.at[cars])], slowness[settled]
        place, since, speed = self.place[cars], self.since[cars], free[cars]
        brakes = since + np.maximum(block.place - _BLOCKED_MILES - place, 0.0) / speed
        braked_at = place + speed * (brakes - since)
        slow = speed * slowness
        released = np.minimum(brakes + (block.place - braked_at) / slow, block.over)
        # Whether a car brakes is settled where the queue begins: a cause that comes later must not change its past.
        meets = (braked_at < block.place) & (block.event <= brakes) & (brakes < released) & (brakes <= second[cars])
        inside = meets & (second[cars] < released)
        past = meets & ~inside
        self.at[cars[inside]] = (braked_at + slow * (second[cars] - brakes))[inside]
        self.speed[cars[inside]] = slow[inside]
        self.place[cars[past]] = (braked_at + slow * (released - brakes))[past]
        self.since[cars[past]] = released[past]


@lru_cache(maxsize=64)
def _incidents(road: Expressway, hour: int) -> Trips:
    begin, end = hour * _HOUR, (hour + 1) * _HOUR
    slots = np.arange(road.cars, dtype=np.int64)
    first = road._trip_at(slots, np.full(road.cars, begin - _LONGEST_TRIP))
    count = road._trip_at(slots, np.full(road.cars, end)) - first + 1
    slot = np.repeat(slots, count)
    number = np.repeat(first, count) + np.arange(slot.size) - np.repeat(np.cumsum(count) - count, count)
    trips = road.trips(slot, number)
    return trips.take((trips.kind > 0) & (begin <= trips.event) & (trips.event < end))


def _joined(parts: list[Trips]) -> Trips:
    return Trips(*(np.concatenate([getattr(part, name) for part in parts]) for name in Trips.__slots__))


def _mix(number: npt.NDArray[np.uint64] | np.uint64) -> npt.NDArray[np.uint64]:
    """The finalizer of splitmix64: every bit of the result depends on every bit of the number."""
    mixed = np.atleast_1d(np.asarray(number, np.uint64))
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
