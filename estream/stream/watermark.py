"""How far time has come: the rule of docs/semantics.md, section 1, over marks of sources and a clock.

Every shard keeps this by itself. All of them see the same marks, so all of them come to the same watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

BEGINNING = -(1 << 62) + 1
"""The watermark before anything was seen."""

OVER = 253_402_300_799_000_000
"""The last second of the year 9999: a source that says it gives nothing more, and holds nobody up."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What a stream says of its time, in microseconds."""

    delay: int
    idle_after: int | None
    speed: float = 1.0
    """How many times faster than the clock its time goes, where it is played back."""
    is_derived: bool = False
    """Whether it is made of other streams: it holds time back until it has come as far, but never moves it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The least and greatest time of the rows a source gave in one go, taken before any condition, and how many."""

    source: str
    least: int
    greatest: int
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """What has been seen so far."""

    greatest: Mapping[str, int] = field(default_factory=dict)
    """Per source the greatest time of its rows."""
    heard: Mapping[str, int] = field(default_factory=dict)
    """Per source the clock when it last gave a row; for one that gave none, when the clock began."""
    first: int | None = None
    """The least time of all rows before the watermark first moved: that of the first row."""
    clock: int | None = None
    """The last time the clock gave; None where there is none, as in a run over what is there."""
    moved: int | None = None
    """The clock when a row last came."""
    base: int = BEGINNING
    """The watermark then."""
    free: int = BEGINNING
    """The watermark but for what Spark and derived streams hold back."""
    watermark: int = BEGINNING
    since: int = BEGINNING
    """The watermark before the last micro-batch."""


def advance(
    progress: Progress, timings: Mapping[str, Timing], marks: Iterable[Mark], clock: int | None, held: int | None
) -> Progress:
    """The progress after one micro-batch.

    `timings` are the sources of the plan; `held` is what Spark's own watermark holds back, where the plan has
    stateful SQL, whose rows come out behind it.
    """
    marks = list(marks)
    own = {name: timing for name, timing in timings.items() if not timing.is_derived}
    given = [mark for mark in marks if mark.source in own]
    greatest = _greatest(progress, timings, marks)
    now = progress.clock if clock is None else max(clock, progress.clock or clock)
    after = replace(
        progress,
        greatest=greatest,
        heard=_heard(progress, own, given, now),
        clock=now,
        first=_first(progress, given),
    )
    waited = active(after, own)
    if waited:
        raw = min(after.greatest[name] - own[name].delay if name in greatest else BEGINNING for name in waited)
        after = replace(after, moved=now if given else progress.moved, base=max(progress.base, raw))
    else:
        after = replace(after, base=max(progress.base, _last_active(after, own)))
        raw = _by_clock(after, max((timing.speed for timing in own.values()), default=1.0))
    limit = min([raw, *([] if held is None else [held]), *_promised(after, timings)])
    reached = max(progress.watermark, limit)
    return replace(after, free=max(progress.free, raw), watermark=reached, since=progress.watermark)


def _greatest(progress: Progress, timings: Mapping[str, Timing], marks: Iterable[Mark]) -> dict[str, int]:
    greatest = {name: seen for name, seen in progress.greatest.items() if name in timings}
    for mark in marks:
        greatest[mark.source] = max(greatest.get(mark.source, mark.greatest), mark.greatest)
    return greatest


def _promised(progress: Progress, timings: Mapping[str, Timing]) -> Iterator[int]:
    """How far derived streams have come, but for those that give nothing more."""
    for name, timing in timings.items():
        seen = progress.greatest.get(name, BEGINNING)
        if timing.is_derived and seen < OVER:
            yield max(seen - timing.delay, BEGINNING)


def active(progress: Progress, timings: Mapping[str, Timing]) -> tuple[str, ...]:
    """The sources that move the watermark: all but those with nothing new for their `idle_after`."""
    return tuple(
        name for name, timing in timings.items() if not timing.is_derived and not _is_idle(progress, name, timing)
    )


def beats(progress: Progress, timings: Mapping[str, Timing]) -> dict[str, int]:
    """Heartbeats for the idle sources: times that let Spark's own watermark go as far as ours."""
    waited = active(progress, timings)
    return {
        name: progress.free + timing.delay
        for name, timing in timings.items()
        if name not in waited and not timing.is_derived and progress.free > BEGINNING
    }


def _heard(progress: Progress, timings: Mapping[str, Timing], marks: list[Mark], now: int | None) -> dict[str, int]:
    if now is None:
        return dict(progress.heard)
    new = {mark.source for mark in marks}
    return {name: now if name in new else progress.heard.get(name, now) for name in timings}


def _first(progress: Progress, marks: list[Mark]) -> int | None:
    """Settled once the watermark has passed it: no row that comes later is older."""
    if progress.first is not None and progress.first < progress.watermark:
        return progress.first
    seen = [max(mark.least, progress.watermark) for mark in marks]
    return min(seen if progress.first is None else [*seen, progress.first], default=None)


def _last_active(progress: Progress, timings: Mapping[str, Timing]) -> int:
    """The watermark just before the last source fell idle, which may have been between two micro-batches."""
    told = {name: seen for name, seen in progress.greatest.items() if name in timings}
    idle_at = {name: progress.heard.get(name, 0) + (timings[name].idle_after or 0) for name in told}
    last = max(idle_at.values(), default=0)
    return min((told[name] - timings[name].delay for name in told if idle_at[name] == last), default=BEGINNING)


def _by_clock(progress: Progress, speed: float) -> int:
    """Where every source is idle, time goes on by the clock, from where it stood when the last row came."""
    if progress.base == BEGINNING or progress.clock is None or progress.moved is None:
        return progress.base
    return progress.base + round((progress.clock - progress.moved) * speed)


def _is_idle(progress: Progress, name: str, timing: Timing) -> bool:
    if timing.idle_after is None or progress.clock is None or name not in progress.heard:
        return False
    return progress.clock - progress.heard[name] >= timing.idle_after
