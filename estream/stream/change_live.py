"""A run that goes on while it is changed: the query is stopped between micro-batches and started with the new plan."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Protocol

from pyspark.sql import SparkSession

from estream.errors import EStreamError
from estream.stream.analyze import analyze
from estream.stream.change import Answer, Request
from estream.stream.change_effect import needs_restart, parts_changed, state_told
from estream.stream.checkpoint import Changes, compare, manifest_of, read_manifest
from estream.stream.runner import Job, Runner
from estream.stream.sink import Take

log = logging.getLogger(__name__)

PROOF = 120.0
"""Seconds that a new version has for its first micro-batch."""
_LOOK = 0.05

Takers = Callable[[Job], AbstractContextManager[tuple[Take, ...]]]
"""Opens what takes the detections of a job besides the sink: its rules."""


@contextmanager
def no_takers(job: Job) -> Iterator[tuple[Take, ...]]:
    """Nothing takes them."""
    yield ()


class Changing(Protocol):
    """What the program says of changes."""

    def propose(self, request: Request) -> Job:
        """The job that the request asks for; EStreamError if it is wrong."""
        ...

    def done(self, request: Request, answer: Answer) -> None:
        """The change has taken effect."""
        ...


class Live:
    """A run and the version it has now."""

    def __init__(
        self,
        job: Job,
        session: SparkSession,
        start: Callable[[Job, Take], Runner],
        taking: Callable[[Job], AbstractContextManager[Take]],
    ) -> None:
        """`start` starts a job; `taking` opens what takes its detections."""
        self.job = job
        self._session, self._start, self._taking = session, start, taking
        self._taken = ExitStack()
        self._runner: Runner | None = None
        self._begun = 0.0
        """When the runner was started, by the clock that never goes back."""

    @property
    def runner(self) -> Runner:
        """The runner of this version."""
        if self._runner is None:
            raise RuntimeError("the run has not begun")
        return self._runner

    def begin(self) -> None:
        """Start the job."""
        self._run(self.job)

    def wait(self, seconds: float) -> bool:
        """Wait until it ends, at most so long; true if it has."""
        return self.runner.wait(seconds)

    def stop(self) -> None:
        """End after the micro-batch that is under way."""
        try:
            if self._runner is not None:
                self._runner.stop()
        finally:
            self._taken.close()

    def renew_tables(self) -> bool:
        """Read static tables anew, if that is due; true if it was.

        Spark lists the files of a table once, when a query is started. So it is started again, on its checkpoint.
        """
        periods = [table.refresh for table in self.job.plan.tables if table.refresh is not None]
        is_due = bool(periods) and (time.monotonic() - self._begun) * 1e6 >= min(periods)
        if is_due and not self.job.once:
            self.runner.stop()
            self._run(self.job)
        return is_due and not self.job.once

    def _run(self, job: Job) -> None:
        self._runner = self._start(job, self._open(job))
        self._begun = time.monotonic()

    def change(self, job: Job) -> Answer:
        """Go on with another version; EStreamError if it cannot be, with the run as it was."""
        changes = self._changes(job)
        told = parts_changed(self.job.checked, job.checked)
        if needs_restart(self.job, job):
            self._ask_spark(job)
            at = self._restart(job)
            told += state_told(changes)
            answer = Answer(True, tuple(told), True, *at, changes.kept, changes.empty, changes.dropped, changes.begun)
        elif told:
            answer = Answer(True, tuple(told), False, *self._exchange(job), changes.kept)
        else:
            answer = Answer(True, ("nothing is changed",))
        self.job = job
        return answer

    def _changes(self, job: Job) -> Changes:
        if job.plan.name != self.job.plan.name:
            raise EStreamError(f"the file is called {job.plan.name}; what runs is {self.job.plan.name}")
        shards = job.settings.detection.shards
        changes = compare(read_manifest(self.job.checkpoint), manifest_of(job.plan, job.checked, shards))
        if changes.refused:
            raise EStreamError("it cannot be changed in place: " + "; ".join(changes.refused))
        return changes

    def _ask_spark(self, job: Job) -> None:
        wrong = [one for one in analyze(job.checked, self._session.newSession()) if one.severity == "error"]
        if wrong:
            raise EStreamError(wrong)

    def _restart(self, job: Job) -> tuple[int, int | None]:
        """Start the new version on the same checkpoint; if it fails, the old one again."""
        self.runner.stop()
        at, planned = (self.runner.next_batch, self._reached), self.runner.planned
        try:
            self._run(job)
            self._prove(planned)
        except EStreamError as error:
            log.warning("%s: the new version failed, the one before it goes on", self.job.plan.name)
            self.runner.stop()
            lost = self._changes(self.job).empty if self.runner.next_batch > at[0] else ()
            self._run(self.job)
            if lost:
                raise EStreamError(
                    f"{error}\na micro-batch had gone through it: {', '.join(lost)} started empty"
                ) from error
            raise
        return at

    def _prove(self, planned: int) -> None:
        """Wait for the first micro-batch that a new version has planned by itself; raises what ended it.

        One that Spark had planned before it was stopped is run first, and reads nothing of streams that are new.
        """
        until = time.monotonic() + PROOF
        while (self.runner.taken is None or self.runner.taken <= planned) and time.monotonic() < until:
            if self.runner.wait(_LOOK):
                return

    def _exchange(self, job: Job) -> tuple[int, int | None]:
        """Let the rules of another version take the detections, from the next micro-batch on."""
        failed: list[EStreamError] = []
        at: list[tuple[int, int | None]] = []

        def change() -> Take:
            taken = self.runner.taken
            at.append((self.runner.next_batch if taken is None else taken + 1, self._reached))
            try:
                return self._open(job)
            except EStreamError as error:
                failed.append(error)
                return self._open(self.job)

        self.runner.swap(change)
        if failed:
            raise failed[0]
        return at[0]

    def _open(self, job: Job) -> Take:
        """Close what took the detections of the last version, and open what takes those of this one."""
        self._taken.close()
        self._taken = ExitStack()
        return self._taken.enter_context(self._taking(job))

    @property
    def _reached(self) -> int | None:
        """The watermark after the last micro-batch."""
        try:
            facts = json.loads((self.job.checkpoint / "progress.json").read_text(encoding="utf-8"))
            return int(facts["watermark"])
        except FileNotFoundError:
            return None


def answered(live: Live, request: Request, changing: Changing) -> Answer:
    """Do what a request asks for, or say why not; then the run goes on as it was."""
    try:
        answer = live.change(changing.propose(request))
    except EStreamError as error:
        return Answer(False, tuple(str(error).splitlines()))
    try:
        changing.done(request, answer)
    except EStreamError as error:
        return replace(answer, told=(*answer.told, f"this could not be written down: {error}"))
    return answer
