"""What people see of a run: streams with rate, lag and watermark, events with counts, the latest detections."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from estream.plan.model import Plan
from estream.stream.detected import instant, to_lines
from estream.stream.sink import Outcome
from estream.stream.watermark import BEGINNING

LATEST = 8
_SECOND = 1_000_000


@dataclass(slots=True)
class Board:
    """Figures of a run, kept up by `note`."""

    plan: Plan
    clock: Callable[[], float] = time.monotonic
    begun: float = 0.0
    moved: float | None = None
    """When the first micro-batch was done, by the clock."""
    batches: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)
    detected: Counter[str] = field(default_factory=Counter)
    late: int = 0
    dead: int = 0
    greatest: dict[str, int] = field(default_factory=dict)
    watermark: int = BEGINNING
    now: int | None = None
    latest: deque[str] = field(default_factory=lambda: deque(maxlen=LATEST))

    def __post_init__(self) -> None:
        self.begun = self.clock()

    def note(self, outcome: Outcome) -> None:
        """Take the figures of a micro-batch."""
        self.batches += 1
        self.moved = self.clock() if self.moved is None else self.moved
        for source, facts in outcome.told:
            if source:
                self.rows[source] += facts["rows"]
            self.raised.update(facts["raised"])
        if outcome.progress is not None:
            self.greatest = outcome.progress["greatest"]
            self.watermark, self.now = outcome.progress["watermark"], outcome.progress["clock"]
        self.late += sum(table.num_rows for _, table in outcome.late)
        self.dead += sum(table.num_rows for _, table in outcome.dead)
        if outcome.detections.num_rows:
            self.detected.update(outcome.detections.column("event").to_pylist())
            self.latest.extend(
                to_lines(self.plan, outcome.detections.slice(max(outcome.detections.num_rows - LATEST, 0)))
            )

    def rate(self, source: str) -> float:
        """Rows per second of a source, since the run began."""
        return self.rows[source] / max(self.clock() - self.begun, 1e-9)

    def is_over(self, seconds: float | None) -> bool:
        """Whether a run of so many seconds is over; starting Spark is no part of them."""
        return seconds is not None and self.moved is not None and self.clock() - self.moved >= seconds

    def lag(self, source: str) -> float | None:
        """Seconds from the greatest time of a source's rows to the clock."""
        if self.now is None or source not in self.greatest:
            return None
        return (self.now - self.greatest[source]) / _SECOND


def render(board: Board) -> RenderableType:
    """The board as tables."""
    streams = Table("stream", "rows", "rows/s", "lag", "greatest time", box=None)
    for stream in board.plan.streams:
        lag, last = board.lag(stream.name), board.greatest.get(stream.name)
        streams.add_row(
            stream.name,
            f"{board.rows[stream.name]:,}",
            f"{board.rate(stream.name):,.0f}",
            "-" if lag is None else f"{lag:,.1f} s",
            "-" if last is None else instant(last),
        )
    events = Table("event", "occurrences", "detections", box=None)
    names = dict.fromkeys(
        [*(leaf.name for leaf in board.plan.leaves), *(one.event for one in board.plan.subscriptions)]
    )
    for name in names:
        raised = f"{board.raised[name]:,}" if name in board.raised else "-"
        events.add_row(name, raised, f"{board.detected[name]:,}" if name in board.detected else "-")
    reached = instant(board.watermark) if board.watermark > 0 else "-"
    foot = f"watermark {reached} · {board.batches:,} batches · {board.late:,} late · {board.dead:,} refused"
    return Group(streams, "", events, "", foot, *(f"  {line[:160]}" for line in board.latest))


@contextmanager
def live(board: Board, console: Console) -> Iterator[Callable[[], None]]:
    """A display that is kept up to date; gives the function that draws it anew."""
    with Live(render(board), console=console, auto_refresh=False) as display:
        yield lambda: display.update(render(board), refresh=True)
