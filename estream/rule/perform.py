"""Performing firings: conditions in Python, actions one after the other, each attempt fenced and recorded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from estream.rule.action import Action
from estream.rule.breaker import Breakers
from estream.rule.callback import Loop, call
from estream.rule.cascade import Cascade
from estream.rule.detection import Detected, Detection
from estream.rule.failure import ActionFailed, ActionLate, ActionRefused, reason
from estream.rule.fence import LOST_MOST, Call, Fence
from estream.rule.recorder import AHEAD, AHEAD_REMOTE, Reach, Recorder
from estream.rule.rule import Rule
from estream.rule.store import Attempt, Outcome, Raised, State
from estream.rule.throttle import Throttle

GRACE: Final = 0.5
"""Seconds after the time-out in which an action that knows its limit may say itself that it failed."""
LONGEST_BACKOFF: Final = 3_600_000_000
TRAIN: Final = 128
"""Firings one after the other that are handed to a thread at once: a hand-over costs as much as a small action."""


def idempotency_key(ceq: str, rule: str, detection: int, action: int) -> str:
    """The key of one action of one firing: the same for every attempt, and different from every other."""
    return f"{ceq}.{rule}-{detection % 2**64:016x}-{action}"


@dataclass(frozen=True, slots=True)
class Work:
    """A firing to be performed, from the action that stands next."""

    rule: Rule
    detected: Detected
    partition: str | None = None
    step: int = 0
    attempts: int = 0
    is_repeated: bool = False
    """Whether its actions may have been performed before: it failed, or the process ended, perhaps before a record."""


@dataclass(slots=True)
class _Run:
    """How far a firing has come; written by the thread that performs it."""

    step: int
    state: State = "running"
    error: BaseException | None = None
    postponed: int | None = None
    started: int = 0
    began: float = 0.0
    tried: list[Attempt] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    fired: tuple[str, int] | None = None


@dataclass(slots=True)
class _Train:
    """Firings that a thread performs one after the other, and where it is."""

    works: Sequence[Work]
    place: int
    run: _Run


def trains(groups: Iterable[Sequence[Work]]) -> Iterator[tuple[bool, Sequence[Work]]]:
    """Groups in order: (True, those that run together), or (False, firings of several groups of one, in order)."""
    single: list[Work] = []
    for group in groups:
        if len(group) == 1 and len(single) < TRAIN:
            single.append(group[0])
            continue
        if single:
            yield False, single
            single = []
        if len(group) == 1:
            single.append(group[0])
        else:
            yield True, group
    if single:
        yield False, single


@dataclass(frozen=True, slots=True)
class Performer:
    """Performs firings and brings their outcomes to the recorder. `clock` gives microseconds."""

    ceq: str
    fence: Fence
    breakers: Breakers
    throttle: Throttle
    cascade: Cascade
    recorder: Recorder
    loop: Loop
    clock: Callable[[], int]
    reach: Reach
    failed: threading.Event = field(default_factory=threading.Event)
    """Set whenever a firing is to be tried again."""

    def in_order(self, groups: Iterable[Sequence[Work]]) -> None:
        """Perform group after group, the firings of a group at the same time."""
        for together, works in trains(groups):
            if together:
                self.together(works)
            else:
                self._join(*self._begin(works, 0))

    def together(self, works: Sequence[Work]) -> None:
        """Perform firings at the same time and wait for all, but for none longer than its time-out."""
        for begun in [self._begin([work], 0) for work in works]:
            self._join(*begun)

    def _begin(self, works: Sequence[Work], place: int) -> tuple[_Train, Call]:
        train = _Train(works, place, _Run(works[place].step))
        performing = Call(lambda performing: self._perform(performing, train))
        self.fence.begin(performing)
        return train, performing

    def _join(self, train: _Train, performing: Call) -> None:
        """Wait for a train; if a firing hangs, the rest goes on on another thread."""
        while not self.fence.join(performing):
            work = train.works[train.place]
            self.recorder.ended(self._outcome(work, self._timed_out(work, train.run)))
            if train.place + 1 == len(train.works):
                return
            train, performing = self._begin(train.works, train.place + 1)

    def _perform(self, performing: Call, train: _Train) -> None:
        """On a thread of the fence: everything that may fail or hang."""
        for place in range(train.place, len(train.works)):
            work = train.works[place]
            run = _Run(work.step)
            train.place, train.run = place, run
            try:
                self._actions(performing, work, run)
            except BaseException as error:
                # Also SystemExit: a callback must not end the thread that others wait for.
                run.error, run.state = error, "failed"
            if not performing.claim():
                return
            try:
                self.recorder.ended(self._outcome(work, run), AHEAD_REMOTE if work.rule.is_remote else AHEAD)
            except Exception:
                return  # the history has stopped: told to whoever comes next

    def _actions(self, performing: Call, work: Work, run: _Run) -> None:
        rule, seconds = work.rule, work.rule.timeout / 1e6
        if self.fence.lost >= LOST_MOST:
            raise ActionFailed(f"not begun: {LOST_MOST} earlier calls hang")
        self.recorder.started(rule.name, work.detected.id)
        if rule.test is not None and work.step == 0 and not self._admitted(performing, work, run, seconds):
            return
        for number in range(work.step, len(rule.actions)):
            action = rule.actions[number]
            run.postponed = self.breakers.wait(action.sink) if action.sink else None
            if run.postponed is not None:
                raise ActionFailed(f"not tried: {action.sink} failed several times in a row and is left alone")
            self._begin_step(performing, run, seconds + action.patience)
            self.reach("before action")
            try:
                action.perform(self._detection(performing, work, run, number), seconds)
            except BaseException as error:
                self._tried(work, run, number, error)
                self._report(action, error)
                raise
            self.reach("after action")
            if action.sink:
                self.breakers.report(action.sink, True)
            self._tried(work, run, number, None)
            run.step = number + 1
            if run.step < len(rule.actions) and not self._progress(performing, work, run):
                return
        run.state = "done"

    def _report(self, action: Action, error: BaseException) -> None:
        """Tell the circuit breaker of a failure, as far as it says something about the sink."""
        if action.sink is None:
            return
        if action.kind == "python" and not isinstance(error, ActionLate):
            self.breakers.report(action.sink, True)  # it does not hang: what it raises is about this detection
        elif isinstance(error, ActionRefused):
            self.breakers.release(action.sink)
        else:
            self.breakers.report(action.sink, False)
            if isinstance(error, ActionFailed) and error.after is not None:
                self.breakers.leave_alone(action.sink, round(error.after * 1e6))

    def _begin_step(self, performing: Call, run: _Run, seconds: float) -> None:
        run.started, run.began = self.clock(), time.monotonic()
        performing.allow(seconds + GRACE)

    def _admitted(self, performing: Call, work: Work, run: _Run, seconds: float) -> bool:
        """Ask the Python condition, then the throttle."""
        assert work.rule.test is not None
        self._begin_step(performing, run, seconds)
        answer = call(work.rule.test, self._detection(performing, work, run, 0), seconds, self.loop)
        if not performing.claim():
            return False
        if not isinstance(answer, bool):
            raise ActionRefused(f"the condition returned {type(answer).__name__}; it has to return True or False")
        if not answer:
            run.state = "suppressed"
            return False
        if work.rule.throttle is not None:
            partition, end = work.partition or "", work.detected.end
            if not self.throttle.admit(work.rule.name, partition, end, work.rule.throttle, work.is_repeated):
                run.state = "throttled"
                return False
            run.fired = partition, end
        return True

    def _detection(self, performing: Call, work: Work, run: _Run, number: int) -> Detection:
        key = idempotency_key(self.ceq, work.rule.name, work.detected.id, number)
        places = count()

        def raiser(event: str, attributes: Mapping[str, Any]) -> None:
            if performing.is_given_up:
                raise ActionFailed(f"event '{event}' is not raised: the action took too long and was given up")
            place = f"{key}-{next(places)}"
            run.raised.append(self.cascade.raise_event(work.detected, event, attributes, place, work.is_repeated))

        return Detection(work.detected, work.rule.name, key, raiser, work.is_repeated)

    def _tried(self, work: Work, run: _Run, number: int, error: BaseException | None) -> None:
        took = round((time.monotonic() - run.began) * 1e6)
        failed = None if error is None else reason(error)
        run.tried.append(Attempt(work.attempts + 1, number, run.started, took, failed))

    def _progress(self, performing: Call, work: Work, run: _Run) -> bool:
        """Record what is done already: a retry or a restart begins with the next action. False if it was given up."""
        if not performing.claim():
            return False
        tried, raised, fired = tuple(run.tried), tuple(run.raised), run.fired
        run.tried, run.raised, run.fired = [], [], None
        name, number = work.rule.name, work.detected.id
        self.recorder.ended(Outcome(name, number, "running", run.step, work.attempts, None, None, tried, raised, fired))
        return True

    def _timed_out(self, work: Work, run: _Run) -> _Run:
        """The run as it stands, apart from what its thread may still write."""
        error = ActionLate(f"took longer than {work.rule.timeout / 1e6:g} s and was left behind")
        left = _Run(run.step, "failed", error, tried=list(run.tried), raised=list(run.raised), fired=run.fired)
        action = work.rule.actions[run.step]
        if action.sink:
            self.breakers.report(action.sink, False)
        took = round((time.monotonic() - run.began) * 1e6)
        left.tried.append(Attempt(work.attempts + 1, run.step, run.started, took, reason(error)))
        return left

    def _outcome(self, work: Work, run: _Run) -> Outcome:
        name, number = work.rule.name, work.detected.id
        tried, raised = tuple(run.tried), tuple(run.raised)
        if run.error is None:
            attempts = work.attempts + (run.state == "done")
            return Outcome(name, number, run.state, run.step, attempts, None, None, tried, raised, run.fired)
        said = reason(run.error)
        self.failed.set()
        if run.postponed is not None:
            return Outcome(
                name, number, "failed", run.step, work.attempts, run.postponed, said, tried, raised, run.fired
            )
        attempts = work.attempts + 1
        if attempts >= work.rule.attempts or isinstance(run.error, ActionRefused):
            return Outcome(name, number, "dead", run.step, attempts, None, said, tried, raised, run.fired)
        wait = min(work.rule.backoff * 2 ** (attempts - 1), LONGEST_BACKOFF)
        asked = run.error.after if isinstance(run.error, ActionFailed) else None
        due = self.clock() + max(wait, round((asked or 0.0) * 1e6))
        return Outcome(name, number, "failed", run.step, attempts, due, said, tried, raised, run.fired)
