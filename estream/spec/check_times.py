"""Points in time and schedules as users write them: timestamps, `in 10 minutes`, cron lines, time zones."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from typing import Final

from estream.duration import parse_duration
from estream.spec.findings import Findings
from estream.suggest import did_you_mean
from estream.text import Text

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("weekday", 0, 7, _WEEKDAYS),
)
_LONGEST: Final = 200
_ITEM: Final = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d+))?")
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def microseconds(text: str) -> int:
    """A timestamp in microseconds since the epoch, UTC unless it says otherwise; ValueError if it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{Text(text).brief} is not a timestamp; write it like 2026-12-24T16:00:00Z") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    whole = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (whole.days * 86_400 + whole.seconds) * 1_000_000 + whole.microseconds


def check_timestamp(
    findings: Findings, text: Text | None, subject: str, key: str, relative: bool = False
) -> int | None:
    """The time in microseconds; `relative` lets `in 10 minutes` stand, whose time is not known before the launch."""
    if text is None:
        return None
    try:
        if relative and text.startswith("in "):
            parse_duration(text[3:])
            return None
        return microseconds(text)
    except ValueError as error:
        findings.say(text, f"{subject}: {key}: {error}")
    return None


def check_timezone(findings: Findings, text: Text | None, subject: str) -> None:
    """The name of a time zone, as in Europe/Zurich."""
    if text is None or text in _zones():
        return
    message = f"{subject}: timezone: {text.brief} is not a time zone; write one like Europe/Zurich"
    findings.say(text, message, hint=did_you_mean(text, _zones()))


def cron_problem(text: str) -> str | None:
    """What is wrong with a cron line of five fields; None if nothing is."""
    fields = text.split()
    if len(text) > _LONGEST:
        return f"{Text(text).brief} is longer than {_LONGEST} characters"
    if len(fields) != len(_FIELDS):
        return f"{text!r} has {len(fields)} fields; write five: minute hour day month weekday"
    for field, (name, least, most, words) in zip(fields, _FIELDS, strict=True):
        for item in field.split(","):
            wrong = _item_problem(item, least, most, words)
            if wrong:
                return f"{name} {field!r}: {wrong}"
    return _never(fields[2], fields[3], fields[4])


def _item_problem(item: str, least: int, most: int, words: tuple[str, ...]) -> str | None:
    shape = _ITEM.fullmatch(item)
    allowed = f"{least} to {most}" + (f" or {words[0].upper()} to {words[-1].upper()}" if words else "")
    if shape is None:
        return f"{item!r} is not right; write *, a value, a range a-b or a step */n"
    values = [_value(word, least, words) for word in shape.groups()[:2] if word is not None]
    for word, value in zip(shape.groups()[:2], values, strict=False):
        if value is None or not least <= value <= most:
            return f"{word!r} is not allowed; it is {allowed}"
    if len(values) > 1 and (values[0] or 0) > (values[1] or 0):
        return f"range {item!r} runs backwards"
    if shape[3] is not None and not 0 < int(shape[3]) <= most:
        return f"step '{shape[3]}' is not allowed; it is 1 to {most}"
    return None


def _value(word: str, least: int, words: tuple[str, ...]) -> int | None:
    if word.isdecimal():
        return int(word)
    return words.index(word.lower()) + least if word.lower() in words else None


def _never(day: str, month: str, weekday: str) -> str | None:
    """A day that none of the months has, as in 30 February; a weekday beside it may still make it happen."""
    if not day.isdecimal() or weekday != "*" or month == "*":
        return None
    months = [_value(word, 1, _MONTHS) for word in month.split(",")]
    if any(number is None or int(day) <= _LONGEST_MONTHS[number - 1] for number in months):
        return None
    return f"day {day} never comes in month {month}"


@cache
def _zones() -> frozenset[str]:
    from zoneinfo import available_timezones

    return frozenset(available_timezones())
