"""The scheduler of future queries: starts each at its time, ends it when it is over, and goes on after a restart.

What is due is decided by `tick` from the clock and the store alone. APScheduler wakes it at the next time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from apscheduler.schedulers.background import BackgroundScheduler

from estream.history.schedules import Schedule, ScheduleStore

log = logging.getLogger(__name__)
_alarm_log = log.getChild("alarms")
# A look that is left out because the one before it goes on is nothing to warn of.
_alarm_log.setLevel(logging.ERROR)

Missed = Literal["run_late", "skip"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOOK = 0.5
"""Seconds between looks at whether a query that runs is over."""


class Stage(Protocol):
    """Where queries are started and stopped."""

    def promise(self, query: str) -> None:
        """Say that the query gives nothing before its start."""

    def start(self, query: str) -> None:
        """Start the query, or let it go on."""

    def is_over(self, query: str) -> bool:
        """Whether it has given all the rows of its span."""
        ...

    def end(self, query: str) -> None:
        """Stop the query, say that it gives nothing more, and put its state away."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A future query as the file has it now; its times are those of a query that is launched now."""

    definition: str
    start: int | None
    stop: int | None
    missed: Missed = "run_late"


def agreed(known: Mapping[str, Schedule], definitions: Mapping[str, Definition], now: int) -> dict[str, Schedule]:
    """The schedules of the queries: those that are kept, and new ones for those that are new or written otherwise.

    A start that has passed while nobody was there to start it is missed: then the query runs late, or is skipped.
    """
    found = {}
    for query, one in definitions.items():
        kept = known.get(query)
        if kept is None or kept.definition != one.definition:
            kept = Schedule(query, one.definition, one.start, one.stop)
        if kept.state == "waiting" and one.missed == "skip" and kept.start is not None and kept.start < now:
            log.warning("query %s is skipped: its start was missed", query)
            kept = replace(kept, state="skipped")
        found[query] = kept
    return found


class Scheduler:
    """The schedules of a file at work."""

    def __init__(
        self, store: ScheduleStore, schedules: Mapping[str, Schedule], stage: Stage, clock: Callable[[], int]
    ) -> None:
        """`clock` gives microseconds since the epoch."""
        self._store, self._stage, self._clock = store, stage, clock
        self._schedules = dict(schedules)
        self._going: set[str] = set()
        self._lock = threading.Lock()
        self._alarms = BackgroundScheduler(timezone=UTC, logger=_alarm_log)

    def begin(self) -> None:
        """Start what is due, and wake for the others."""
        self.recall()
        for query, schedule in self._schedules.items():
            if schedule.state == "waiting" and schedule.start is not None:
                when = _EPOCH + timedelta(microseconds=schedule.start)
                self._alarms.add_job(self.tick, "date", run_date=when, id=query, misfire_grace_time=None)
        self._alarms.add_job(self.tick, "interval", seconds=_LOOK, max_instances=1, coalesce=True)
        self._alarms.start()

    def recall(self) -> None:
        """Keep the schedules, say what is known of the time of each query, and start what is due."""
        for query, schedule in self._schedules.items():
            self._store.put(schedule)
            if schedule.state == "skipped":
                self._stage.end(query)
            elif schedule.state == "waiting":
                self._stage.promise(query)
        self.tick()

    def tick(self) -> None:
        """Start what is due, and end what is over."""
        with self._lock:
            for query, schedule in self._schedules.items():
                if schedule.state == "waiting" and (schedule.start is None or schedule.start <= self._clock()):
                    self._mark(query, "running")
                if self._schedules[query].state == "running":
                    self._go_on(query)

    def close(self) -> None:
        """Wake no more; what runs is running still for the next start."""
        if self._alarms.running:
            # APScheduler, while it shuts down, fails over a job that it is about to remove: so there is none.
            self._alarms.pause()
            self._alarms.remove_all_jobs()
            self._alarms.shutdown()

    def _go_on(self, query: str) -> None:
        if query not in self._going:
            self._stage.start(query)
            self._going.add(query)
        if self._stage.is_over(query):
            self._stage.end(query)
            self._mark(query, "over")

    def _mark(self, query: str, state: Literal["running", "over"]) -> None:
        self._schedules[query] = replace(self._schedules[query], state=state)
        self._store.mark(query, state)
