"""Temporal primitive events: `at`, `every` and `cron` (docs/semantics.md, section 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MINUTE = 60_000_000
MONTHS = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def instants(definition: Mapping[str, Any], first: int, last: int) -> list[int]:
    """When a temporal event occurs, up to T: `at` once; `every` and `cron` after the first row."""
    if (at := definition.get("at")) is not None:
        return [at] if at <= last else []
    if (every := definition.get("every")) is not None:
        return [time for time in range(first - first % every, last + 1, every) if time > first]
    return list(cron_instants(definition["cron"], definition.get("timezone") or "UTC", first, last))


def cron_instants(text: str, timezone: str, first: int, last: int) -> Iterator[int]:
    """Minute by minute: those that show a wall-clock time which all five fields admit; Sunday is 0 and 7.

    Where minute and hour are given without `*`, a time that the clock shows twice is the first of the two only, and
    one that it skips is as much later as the clock jumps.
    """
    zone = ZoneInfo(timezone)
    given = not any(part.startswith("*") for part in text.split()[:2])
    for time in range(first - first % MINUTE, last + 1, MINUTE):
        local = wall(time, zone)
        # Summer time: when the clock jumps forward or back it does so by less than a day.
        jumps = {(wall(time - 1440 * MINUTE, zone) - local) + timedelta(days=1), timedelta(0)}
        again = any(wall(time - jump // MICROSECOND, zone) == local for jump in jumps if jump > timedelta(0))
        skipped = any(skips(local + jump, zone) and admits(text, local + jump) for jump in jumps if jump < timedelta(0))
        if time > first and ((admits(text, local) and not (given and again)) or (given and skipped)):
            yield time


def wall(time: int, zone: ZoneInfo) -> datetime:
    """What the clock shows."""
    return (EPOCH + time * MICROSECOND).astimezone(zone).replace(tzinfo=None)


def skips(local: datetime, zone: ZoneInfo) -> bool:
    """Whether the clock never shows this."""
    return local.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local


def admits(text: str, local: datetime) -> bool:
    """Whether all fields admit the wall-clock time; of day and weekday either, if both are given."""
    minute, hour, day, month, weekday = text.upper().split()
    days = (
        local.day in field(day, 1, 31),
        local.isoweekday() % 7 in {value % 7 for value in field(weekday, 0, 7, WEEKDAYS)},
    )
    either = not day.startswith("*") and not weekday.startswith("*")
    return (
        local.minute in field(minute, 0, 59)
        and local.hour in field(hour, 0, 23)
        and local.month in field(month, 1, 12, MONTHS)
        and (any(days) if either else all(days))
    )


def field(text: str, least: int, greatest: int, names: Sequence[str] = ()) -> set[int]:
    """The values a field admits: `*`, numbers, names, ranges and steps."""
    admitted: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        low, dash, high = span.partition("-")
        begin = least if span == "*" else number(low, names)
        end = greatest if span == "*" or (step and not dash) else number(high or low, names)
        admitted.update(range(begin, end + 1, int(step or 1)))
    return admitted


def number(text: str, names: Sequence[str]) -> int:
    """A number or the name of a month or weekday."""
    return names.index(text) if text in names else int(text)
