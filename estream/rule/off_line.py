"""Rules off line: detached firings on workers of their own, and retries of what failed, from the record."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, Full, Queue
from typing import Final

from estream.rule.failure import reason
from estream.rule.perform import Performer, Work
from estream.rule.recorder import patiently
from estream.rule.rule import RuleSet
from estream.rule.store import Store, StoreAway, StoredFiring, StoreStopped

PAGE: Final = 500
"""Firings that are read from the record at a time."""
IDLE: Final = 1.0
"""Seconds between looks for retries that another process asked for."""
_LOOK: Final = 0.2

log: Final = logging.getLogger("estream.rules")


class OffLine:
    """The threads that run what the stream does not wait for. `over` ends them."""

    def __init__(
        self,
        rules: RuleSet,
        store: Store,
        performer: Performer,
        over: threading.Event,
        is_over: Callable[[], bool],
        queue: int,
        workers: int,
    ) -> None:
        """A history that is away is waited for until it `is_over`."""
        self._rules, self._store, self._performer, self._over, self._is_over = rules, store, performer, over, is_over
        self._failure: StoreStopped | StoreAway | None = None
        self._queue: Queue[Work] = Queue(queue)
        self._workers = workers
        self._threads: list[threading.Thread] = []
        self.is_full = False
        """Whether the stream waits for detached firings."""

    @property
    def waiting(self) -> int:
        """Detached firings that wait."""
        return self._queue.qsize()

    def begin_detached(self) -> None:
        """Begin to run detached firings."""
        for number in range(self._workers):
            self._begin(self._serve, f"detached-{number + 1}")

    def begin_retries(self) -> None:
        """Begin to try failed firings again when they are due."""
        self._begin(self._retry, "retries")

    def join(self) -> None:
        """Wait for the threads to end, after `over` is set."""
        self._performer.failed.set()
        for thread in self._threads:
            thread.join()

    def drain(self, seconds: float) -> bool:
        """Wait until no detached firing waits or runs, at most so long; whether it came to that."""
        with self._queue.all_tasks_done:
            self._queue.all_tasks_done.wait_for(
                lambda: self._failure is not None or not self._queue.unfinished_tasks, seconds
            )
            return not self._queue.unfinished_tasks

    def require_working(self) -> None:
        """Raise what ended a thread: the history has stopped, or is away at the end."""
        if self._failure is not None:
            raise self._failure

    def detach(self, work: Work) -> None:
        """Hand over a firing; if the workers are too far behind, the stream waits and says so."""
        while not self._over.is_set():
            self.require_working()
            try:
                self._queue.put(work, block=self.is_full, timeout=_LOOK)
                self.is_full = False
                return
            except Full:
                if not self.is_full:
                    log.warning("%d detached firings wait: the stream waits for them", self.waiting)
                self.is_full = True

    def _begin(self, serve: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=self._fenced, args=(serve,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _fenced(self, serve: Callable[[], None]) -> None:
        """A history that stopped, or that is away at the end, ends the thread: the stream is told."""
        try:
            serve()
        except (StoreStopped, StoreAway) as error:
            log.error("%s", error)
            self._fail(error)
        except Exception as error:
            log.debug("rules off line fail", exc_info=error)
            log.error("rules off line fail: %s", reason(error))
            self._fail(StoreStopped(f"rules off line fail: {reason(error)}"))

    def _fail(self, error: StoreStopped | StoreAway) -> None:
        with self._queue.all_tasks_done:
            self._failure = error
            self._queue.all_tasks_done.notify_all()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                work = self._queue.get(timeout=_LOOK)
            except Empty:
                continue
            self._performer.together([work])
            self._queue.task_done()

    def _retry(self) -> None:
        """Look for failed firings that are due, and try them again, some at a time."""
        clock, recorder, failed = self._performer.clock, self._performer.recorder, self._performer.failed
        while not self._over.is_set():
            failed.clear()
            due = patiently(lambda: self._store.due(clock(), PAGE), self._is_over)
            for group in _groups([one for one in due if one.rule in self._rules.rules], self._workers):
                self._performer.together([self._again(one) for one in group])
                if self._over.is_set():
                    return
            recorder.flush()
            following = patiently(self._store.next_due, self._is_over)
            wait = IDLE if following is None else min((following - clock()) / 1e6, IDLE)
            failed.wait(max(wait, 0.01))

    def _again(self, one: StoredFiring) -> Work:
        return Work(self._rules.rules[one.rule], one.detected, one.partition, one.step, one.attempts, True)


def _groups(stored: Sequence[StoredFiring], size: int) -> Iterator[Sequence[StoredFiring]]:
    for first in range(0, len(stored), size):
        yield stored[first : first + size]
