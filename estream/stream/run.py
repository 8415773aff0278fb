"""`estream run`: a plan live, until it is told to stop, with what it finds shown or written as lines."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO

import pyarrow as pa
from rich.console import Console

from estream.stream.change import Answer, Desk, desk_of
from estream.stream.change_live import Changing, Live, Takers, answered, no_takers
from estream.stream.detected import to_lines
from estream.stream.display import Board, live
from estream.stream.rehearse import rehearsed
from estream.stream.runner import Job, Runner, refuse_changes
from estream.stream.session import open_session
from estream.stream.sink import FileSink, Outcome, Take

_LOOK = 0.25
"""Seconds between looks at whether to stop, and at what is asked of the run."""

INTERRUPTED = 130
"""Exit status of a run that a second Ctrl-C has ended at once."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

NO_CHANGES = Answer(False, ("this run takes no changes",))


@dataclass(frozen=True, slots=True)
class Way:
    """How a run is shown, and how long it goes on."""

    out: TextIO
    is_shown: bool
    """On a terminal: a display. Else every detection is a line of JSON."""
    seconds: float | None = None


@dataclass(slots=True)
class Stop:
    """Whether a run was asked to end: then nothing that is away is waited for."""

    asked: bool = False

    def is_asked(self) -> bool:
        """Whether it was."""
        return self.asked


Watch = Callable[[Outcome], None]
"""Told everything that a micro-batch gave."""


def _unwatched(outcome: Outcome) -> None:
    return


def run(
    job: Job,
    way: Way,
    folder: Path,
    conf: Mapping[str, str],
    takers: Takers = no_takers,
    changes: Changing | None = None,
    watches: Watch = _unwatched,
    stop: Stop | None = None,
) -> Board:
    """Run until it ends, its time is over or a signal comes; gives the figures. `folder` keeps the detections.

    `takers` opens what takes the detections of a job besides; `changes` says what becomes of requests to change the
    run, without which there are none. `watches` is told everything that each micro-batch gave. `stop` tells others
    that the end was asked for.
    """
    refuse_changes(job)
    board = Board(job.plan)
    with ExitStack() as opened:
        desk = opened.enter_context(desk_of(job.checkpoint))
        console = Console(file=way.out)
        stopping = opened.enter_context(_signals(console, stop or Stop()))
        with rehearsed(job.plan, job.checked):
            session = open_session(job.settings, job.plan.name, conf, folder / "spark.log")
        stopping.listen()
        draw = opened.enter_context(live(board, console)) if way.is_shown else None

        def start(job: Job, take: Take) -> Runner:
            board.plan = job.plan
            return Runner(job, session, take, _watching(board, draw, watches))

        @contextmanager
        def taking(job: Job) -> Iterator[Take]:
            with takers(job) as takes:
                yield _handing(job, way, (FileSink(folder / "detections", job.plan).take, *takes))

        going = Live(job, session, start, taking)
        opened.callback(going.stop)
        if not stopping.stop.asked:
            going.begin()
            _wait(going, desk, changes, stopping.stop, lambda: board.is_over(way.seconds))
    return board


def _handing(job: Job, way: Way, takes: tuple[Take, ...]) -> Take:
    def take(batch: int, detections: pa.Table) -> None:
        for each in takes:
            each(batch, detections)
        if not way.is_shown and detections.num_rows:
            way.out.writelines(f"{line}\n" for line in to_lines(job.plan, detections))
            way.out.flush()

    return take


def _watching(board: Board, draw: Callable[[], None] | None, also: Watch) -> Watch:
    def watch(outcome: Outcome) -> None:
        also(outcome)
        board.note(outcome)
        if draw is not None:
            draw()

    return watch


def _wait(going: Live, desk: Desk, changes: Changing | None, stop: Stop, is_over: Callable[[], bool]) -> None:
    while not stop.asked and not is_over():
        if going.wait(_LOOK):
            return
        going.renew_tables()
        for number, request in desk.pending():
            desk.answer(number, NO_CHANGES if changes is None else answered(going, request, changes))
    stop.asked = True


@dataclass(slots=True)
class _Stopping:
    """Signals ask to stop; the micro-batch under way is finished first."""

    console: Console
    stop: Stop

    def listen(self) -> None:
        """Take the signals. Spark takes them for itself when a session is made: then it has to be said again."""
        if threading.current_thread() is not threading.main_thread():
            return  # Python gives signals to the main thread alone: who runs a file on another one stops it otherwise
        for number in _SIGNALS:
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.stop.asked and number == signal.SIGINT:
            # Who asks twice does not want to wait. What is under way is run again by the next start, as after a crash.
            self.console.show_cursor()
            os._exit(INTERRUPTED)
        self.stop.asked = True


@contextmanager
def _signals(console: Console, stop: Stop) -> Iterator[_Stopping]:
    """Listen to the signals that ask to stop, and leave them as they were."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    stopping = _Stopping(console, stop)
    stopping.listen()
    try:
        yield stopping
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)
