"""How far the time of a window's output lies behind the moment it comes out: what reads it has to wait so long."""

from __future__ import annotations

from estream.spec.expression import Aggregate, Attribute, Expression
from estream.spec.model import Window


def output_delay(window: Window, grouped: bool, source_time: str, time: Expression) -> int | None:
    """In microseconds; None where nothing bounds it, so that the output would be late wherever it is read.

    `time` is what `select` gives for the output's time column, `source_time` the time column of the rows.
    """
    length = window.time.microseconds if window.time is not None else None
    moment = _moment(time, source_time)
    if moment == "newest" and (window.slide == "each" or (length is None and not grouped)):
        return 0
    return {"end": 0, "newest": length, "oldest": length}.get(moment)


def _moment(time: Expression, source_time: str) -> str:
    """Which moment of the window it is: its end, or a time between its ends."""
    match time:
        case Attribute("window", "end"):
            return "end"
        case Attribute("window", "start"):
            return "oldest"
        case Attribute(None, name) | Aggregate("last" | "max", Attribute(None, name)) if name == source_time:
            return "newest"
        case Aggregate("first" | "min", Attribute(None, name)) if name == source_time:
            return "oldest"
    return "unknown"
