"""Records what became of firings, many in one transaction while they come fast, each at once while they come slowly."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from estream.rule.failure import reason
from estream.rule.store import Outcome, Store, StoreAway, StoreStopped

AHEAD: Final = 256
"""Outcomes that may wait for their record before who brings another one has to wait."""
AHEAD_REMOTE: Final = 2
"""The same for actions that reach others: a crash repeats no more than these and what runs."""
LONGEST_WAIT: Final = 5.0

log: Final = logging.getLogger("estream.history")
Given = TypeVar("Given")
Reach = Callable[[str], None]
"""Told the name of each commit point that is reached."""


def patiently(ask: Callable[[], Given], is_over: Callable[[], bool]) -> Given:
    """What the store gives, however long it is away; StoreAway only if everything is over."""
    wait, said = 0.05, False
    while True:
        try:
            given = ask()
        except StoreAway as away:
            if is_over():
                raise
            if not said:
                log.warning("the history is away and is waited for: %s", away)
                said = True
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
            continue
        if said:
            log.warning("the history is back")
        return given


class Recorder:
    """One thread that writes outcomes in groups: whatever came while the last group was written is the next one."""

    def __init__(self, store: Store, reach: Reach, is_stopping: Callable[[], bool]) -> None:
        """Once it `is_stopping`, a history that is away is not waited for."""
        self._store, self._reach, self._is_stopping = store, reach, is_stopping
        self._changed = threading.Condition()
        self._started: dict[tuple[str, int], None] = {}
        self._outcomes: list[Outcome] = []
        self._is_writing = False
        self._is_closed = False
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._serve, name="recorder", daemon=True)
        self._thread.start()

    def started(self, rule: str, detection: int) -> None:
        """A firing is about to run: it must not if what becomes of it cannot be recorded."""
        with self._changed:
            self._require_working()
            self._started[rule, detection] = None
            if not self._is_writing:
                self._changed.notify_all()

    def ended(self, outcome: Outcome, ahead: int = AHEAD) -> None:
        """A firing has ended, for good or until its retry. Waits if more than `ahead` wait for their record."""
        with self._changed:
            while len(self._outcomes) >= ahead and self.failure is None:
                self._changed.wait()
            self._require_working()
            self._started.pop((outcome.rule, outcome.detection), None)
            self._outcomes.append(outcome)
            if not self._is_writing:
                self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all that was said is recorded."""
        with self._changed:
            while (self._started or self._outcomes or self._is_writing) and self.failure is None:
                self._changed.wait()
            self._require_working()

    def _require_working(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not (self._started or self._outcomes or self._is_closed):
                    self._changed.wait()
                if not (self._started or self._outcomes):
                    return
                started, outcomes = list(self._started), self._outcomes
                self._started, self._outcomes, self._is_writing = {}, [], True
            try:
                self._reach("before outcome")
                patiently(lambda: self._store.finish(started, outcomes), self._is_over)  # noqa: B023
                self._reach("after outcome")
            except (StoreAway, StoreStopped) as error:
                self.failure = error
            except Exception as error:
                # Whatever it is: who waits for a record must not wait for ever.
                log.debug("the history fails", exc_info=error)
                self.failure = StoreStopped(f"the history cannot be written: {reason(error)}")
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
            if self.failure is not None:
                return

    def _is_over(self) -> bool:
        return self._is_closed or self._is_stopping()

    def close(self) -> None:
        """Write what is left and end; what cannot be written is run again after the next start."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
