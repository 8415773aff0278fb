"""`estream run`: a plan live, until it is told to stop, with what it finds shown or written as lines."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO

import pyarrow as pa
from rich.console import Console

from estream.stream.detected import to_lines
from estream.stream.display import Board, live
from estream.stream.runner import Job, Runner, refuse_changes
from estream.stream.session import open_session
from estream.stream.sink import FileSink, Outcome, Take

_LOOK = 0.25
"""Seconds between looks at whether to stop."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a run is shown, and how long it goes on."""

    out: TextIO
    is_shown: bool
    """On a terminal: a display. Else every detection is a line of JSON."""
    seconds: float | None = None


def run(job: Job, way: Way, folder: Path, conf: Mapping[str, str], takes: tuple[Take, ...] = ()) -> Board:
    """Run until it ends, its time is over or a signal comes; gives the figures. `folder` keeps the detections."""
    refuse_changes(job)
    board = Board(job.plan)
    with ExitStack() as opened:
        asked = opened.enter_context(_signals())
        session = open_session(job.settings, job.plan.name, conf, folder / "spark.log")
        draw = opened.enter_context(live(board, Console(file=way.out))) if way.is_shown else None
        sink = FileSink(folder / "detections", job.plan)
        runner = Runner(job, session, _handing(job, way, (sink.take, *takes)), _watching(board, draw))
        opened.callback(runner.stop)
        _wait(runner, asked, way.seconds)
    return board


def _handing(job: Job, way: Way, takes: tuple[Take, ...]) -> Take:
    def take(batch: int, detections: pa.Table) -> None:
        for each in takes:
            each(batch, detections)
        if not way.is_shown and detections.num_rows:
            way.out.writelines(f"{line}\n" for line in to_lines(job.plan, detections))
            way.out.flush()

    return take


def _watching(board: Board, draw: Callable[[], None] | None) -> Callable[[Outcome], None]:
    def watch(outcome: Outcome) -> None:
        board.note(outcome)
        if draw is not None:
            draw()

    return watch


def _wait(runner: Runner, asked: threading.Event, seconds: float | None) -> None:
    until = None if seconds is None else time.monotonic() + seconds
    while not asked.is_set() and (until is None or time.monotonic() < until):
        if runner.wait(_LOOK):
            return


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Set once a signal asks to stop; the micro-batch under way is finished first."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
