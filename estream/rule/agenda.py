"""The agenda: takes the detections of micro-batches, records what they cause, and runs it in the order of the contract.

One transaction records detections and firings; then immediate rules run detection by detection, for each by falling
priority and equal priorities together; then deferred rules by priority; detached ones run on workers of their own. Only
first attempts stand in line: what fails is retried off line, from the record.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa

from estream.errors import EStreamError
from estream.rule.action import Services
from estream.rule.assign import Firings, assign
from estream.rule.breaker import Breakers
from estream.rule.cascade import Cascade
from estream.rule.detection import Detected
from estream.rule.detection import now as now
from estream.rule.fence import Fence
from estream.rule.layout import Layout, detected, in_order, keys_of
from estream.rule.off_line import PAGE, OffLine
from estream.rule.perform import Performer, Work
from estream.rule.recorder import Reach, Recorder, patiently
from estream.rule.rule import RuleSet
from estream.rule.store import COUPLINGS, Coupling, NewFiring, Outcome, Store, StoreAway, StoredFiring, StoreStopped
from estream.rule.throttle import Throttle
from estream.settings import RuleSettings

POINTS: Final = (
    "before record", "after record", "before action", "after action", "before outcome", "after outcome", "batch done",
)  # fmt: skip
"""Commit points: where a fault run kills the process."""
SLICE: Final = 1_000
"""Detections that are Python objects at a time, in a large micro-batch."""
KEPT: Final = 10_000
"""Detections of a micro-batch that may all be Python objects at the same time."""

log: Final = logging.getLogger("estream.rules")


def _unwatched(point: str) -> None:
    return


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Taken:
    """What a micro-batch came to."""

    detections: int
    new: int
    """Detections that were not recorded before."""
    firings: int
    """Firings recorded as pending."""


@dataclass(frozen=True, slots=True)
class Status:
    """How far behind rules are."""

    detached: int
    """Detached firings that wait."""
    is_full: bool
    """Whether the stream waits for detached firings."""
    hanging: int
    """Calls that were given up and still hang."""
    open_circuits: dict[str, int]


class _Detections:
    """The detections of a table as Python objects: made a slice at a time, and kept only if they are few."""

    def __init__(self, layout: Layout, table: pa.Table) -> None:
        self._layout, self.table = layout, table
        self._kept = detected(layout, table) if table.num_rows <= KEPT else None

    def at(self, places: Sequence[int]) -> Iterator[tuple[int, Detected]]:
        """The detections at ascending places."""
        if self._kept is not None:
            yield from ((place, self._kept[place]) for place in places)
            return
        for first in range(0, len(places), SLICE):
            part = places[first : first + SLICE]
            whole = self.table.slice(part[0], len(part)) if isinstance(part, range) else self.table.take(pa.array(part))
            yield from zip(part, detected(self._layout, whole), strict=True)


class Agenda:
    """Rules at work. `start` it, `take` micro-batches one after the other, `close` it."""

    def __init__(
        self,
        rules: RuleSet,
        store: Store,
        settings: RuleSettings,
        services: Services,
        clock: Callable[[], int] = now,
        reach: Reach = _unwatched,
        is_stopping: Callable[[], bool] = _never,
    ) -> None:
        """`reach` is told each of POINTS when it is reached.

        Once it `is_stopping`, a history that is away is not waited for.
        """
        self.rules, self._store, self._reach, self._is_stopping = rules, store, reach, is_stopping
        self._over = threading.Event()
        self._recorder = Recorder(store, reach, is_stopping)
        self._throttle = Throttle(lambda rule, keys: self._ask(lambda: store.last_fired(rule, keys)))
        cascade = Cascade(
            rules.raised, settings.cascade_depth, services.raise_event,
            lambda event, at: self._ask(lambda: store.depth(event, at)),
        )  # fmt: skip
        self._performer = Performer(
            rules.ceq, Fence(), Breakers(clock), self._throttle, cascade, self._recorder, services.loop, clock, reach
        )
        self._off_line = OffLine(
            rules, store, self._performer, self._over, self._is_over, settings.queue, settings.workers
        )

    def start(self) -> None:
        """Make the rules known, run what was recorded and not finished, and begin to work off line."""
        try:
            self._ask(lambda: self._store.declare([one.record for one in self.rules.rules.values()], self.rules.layout))
            self._off_line.begin_detached()
            self._recover()
        except StoreStopped as stopped:
            raise EStreamError(str(stopped)) from None
        except StoreAway as away:
            raise EStreamError(f"stopped while the history is away: {away}") from None
        self._off_line.begin_retries()

    def take(self, batch: int, detections: pa.Table) -> Taken:
        """Record and run a micro-batch; one that was taken before changes nothing."""
        try:
            return self._take(batch, detections)
        except StoreStopped as stopped:
            raise EStreamError(str(stopped)) from None
        except StoreAway as away:
            log.warning("stopped while the history is away: the next start takes this micro-batch again")
            raise EStreamError(f"stopped while the history is away: {away}") from None

    def status(self) -> Status:
        """How far behind rules are, for people and for metrics."""
        performer, off_line = self._performer, self._off_line
        return Status(off_line.waiting, off_line.is_full, performer.fence.lost, performer.breakers.open())

    def drain(self, seconds: float) -> bool:
        """Wait for detached firings, at most so long; whether none is left."""
        return self._off_line.drain(seconds)

    def close(self) -> None:
        """Let what runs end, record it, and stop; what waits is run after the next start."""
        self._over.set()
        self._off_line.join()
        self._recorder.close()
        self._performer.fence.close()
        self._performer.loop.close()
        self.rules.close()
        self._store.close()

    def _ask(self, ask: Callable[[], Any]) -> Any:
        return patiently(ask, self._is_over)

    def _is_over(self) -> bool:
        return self._over.is_set() or self._is_stopping()

    def _take(self, batch: int, detections: pa.Table) -> Taken:
        self._off_line.require_working()
        table = in_order(self.rules.layout, detections)
        fresh = self._fresh(table)
        firings = assign(self.rules, fresh, self._throttle) if fresh.num_rows else {}
        if fresh.num_rows:
            self._reach("before record")
            found = _Detections(self.rules.layout, fresh)
            self._ask(lambda: self._store.record(batch, lambda: _records(found, firings)))
            self._reach("after record")
            self._run(found, firings)
            self._recorder.flush()
        self._reach("batch done")
        pending = sum(one.state == "pending" for each in firings.values() for one in each)
        return Taken(table.num_rows, fresh.num_rows, pending)

    def _fresh(self, table: pa.Table) -> pa.Table:
        """The detections that are not recorded yet, each once."""
        if not table.num_rows:
            return table
        keys, ids = keys_of(self.rules.layout, table), table.column("id").to_pylist()
        by_event: dict[tuple[str, str | None], list[int]] = {}
        for key, number in zip(keys, ids, strict=True):
            by_event.setdefault(key, []).append(number)
        seen = {key: set(self._ask(lambda: self._store.known(*key, mine))) for key, mine in by_event.items()}  # noqa: B023
        new = np.ones(table.num_rows, dtype=np.bool_)
        for place, (key, number) in enumerate(zip(keys, ids, strict=True)):
            new[place] = number not in seen[key]
            seen[key].add(number)
        return table if new.all() else table.filter(pa.array(new))

    def _run(self, found: _Detections, firings: Firings) -> None:
        """Immediate rules detection by detection, then deferred ones by priority; detached ones are handed over."""
        places = sorted(place for place, each in firings.items() if any(one.state == "pending" for one in each))
        deferred: dict[int, list[int]] = {}
        self._performer.in_order(self._immediate(found.at(places), firings, deferred))
        for priority in sorted(deferred, reverse=True):
            self._performer.in_order(
                [work for work in self._works(one, firings[place], "deferred") if work.rule.priority == priority]
                for place, one in found.at(deferred[priority])
            )

    def _immediate(
        self, found: Iterable[tuple[int, Detected]], firings: Firings, deferred: dict[int, list[int]]
    ) -> Iterator[list[Work]]:
        """Immediate firings in groups of one detection and priority; notes on the way what is deferred."""
        for place, one in found:
            immediate = self._works(one, firings[place], "immediate")
            for _, equal in groupby(immediate, key=lambda work: work.rule.priority):
                yield list(equal)
            for priority in {work.rule.priority for work in self._works(one, firings[place], "deferred")}:
                deferred.setdefault(priority, []).append(place)
            for work in self._works(one, firings[place], "detached"):
                self._off_line.detach(work)

    def _works(self, one: Detected, firings: Sequence[NewFiring], coupling: Coupling) -> list[Work]:
        pending = ((self.rules.rules[each.rule], each) for each in firings if each.state == "pending")
        return [Work(rule, one, each.partition) for rule, each in pending if rule.coupling == coupling]

    def _recover(self) -> None:
        """Run what an earlier process recorded and did not finish, in the order it was recorded."""
        for coupling in COUPLINGS:
            after = 0
            while page := self._ask(lambda: self._store.unfinished(coupling, after, PAGE)):  # noqa: B023
                for number, stored in page:
                    after = number
                    self._recover_one(stored)
        self._recorder.flush()

    def _recover_one(self, stored: StoredFiring) -> None:
        rule = self.rules.rules.get(stored.rule)
        if rule is None:
            return
        attempts = stored.attempts + (stored.state == "running")
        if attempts >= rule.attempts:
            said = f"the process ended while it ran, for the {attempts}. time"
            outcome = Outcome(rule.name, stored.detected.id, "dead", stored.step, attempts, error=said)
            self._recorder.ended(outcome)
            return
        work = Work(rule, stored.detected, stored.partition, stored.step, attempts, True)
        if rule.coupling == "detached":
            self._off_line.detach(work)
            return
        # Recorded first: an action that ends the process is counted even if it does so at once.
        self._recorder.started(rule.name, stored.detected.id)
        self._recorder.flush()
        self._performer.together([work])


def _records(found: _Detections, firings: Firings) -> Iterator[tuple[Detected, Sequence[NewFiring]]]:
    for place, one in found.at(range(found.table.num_rows)):
        yield one, firings.get(place, ())
