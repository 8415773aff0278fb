"""Constants of the expression language: numbers, times and intervals, from their text."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from estream.duration import MICROSECONDS
from estream.spec.expression import Literal, Span
from estream.spec.types import BIGINT, DATE, DOUBLE, INT, INTERVAL, TIMESTAMP

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_MOST_DIGITS = 400
_SUFFIXED = re.compile(r"(\d+)([YSL])", re.IGNORECASE)
_SUFFIXES = {"Y": 2**7 - 1, "S": 2**15 - 1, "L": 2**63 - 1}
"""The largest number of each type that a letter after a number stands for."""
_CLOCK_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")


def number(digits: str, span: Span) -> Literal:
    """A whole number as int or bigint, all other numbers as double; ValueError when it is too large."""
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"the number {digits[:20]}... has more than {_MOST_DIGITS} digits")
    if re.fullmatch(r"-?\d+", digits):
        whole = int(digits)
        if -(2**31) <= whole < 2**31:
            return Literal(whole, INT, span)
        if -(2**63) <= whole < 2**63:
            return Literal(whole, BIGINT, span)
    real = float(digits)
    if math.isinf(real):
        raise ValueError(f"the number {digits} is too large")
    return Literal(real, DOUBLE, span)


def check_suffixed(written: str, is_negative: bool) -> None:
    """ValueError where Spark refuses a literal with a suffix, as in `300Y`; other text is let through."""
    suffixed = _SUFFIXED.fullmatch(written)
    if suffixed is None:
        return
    most = _SUFFIXES[suffixed[2].upper()]
    if len(suffixed[1]) > _MOST_DIGITS or int(suffixed[1]) > most + is_negative:
        raise ValueError(f"{written[:20]} is out of range; a number with {suffixed[2]} is {-most - 1} to {most}")


def timestamp(text: str, span: Span) -> Literal:
    """A moment, in UTC where the text has no zone; ValueError when it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"'{text}' is not a timestamp; write it like '2026-01-31 18:30:00'") from None
    try:
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError(f"the timestamp '{text}' is out of range") from None
    return Literal((moment - _EPOCH) // timedelta(microseconds=1), TIMESTAMP, span)


def day(text: str, span: Span) -> Literal:
    """A date; ValueError when the text is none."""
    try:
        return Literal((date.fromisoformat(text.strip()) - _EPOCH.date()).days, DATE, span)
    except ValueError:
        raise ValueError(f"'{text}' is not a date; write it like '2026-01-31'") from None


def interval(amount: str, first: str | None, last: str | None, span: Span) -> Literal:
    """`INTERVAL amount first [TO last]`, or with the units in the amount; ValueError when it has no fixed length."""
    if len(amount) > _MOST_DIGITS:
        raise ValueError(f"the interval '{amount[:20]}...' is longer than {_MOST_DIGITS} characters")
    if last is not None and first is not None:
        exact = Fraction(_clock(amount, first.upper(), last.upper()))
    elif first is not None:
        exact = _size(first) * _fraction(amount)
    else:
        exact = _parts(amount)
    if exact.denominator != 1:
        raise ValueError(f"the interval '{amount}' is finer than a microsecond")
    if abs(exact) >= 2**63:
        raise ValueError(f"the interval '{amount}' is too long")
    return Literal(int(exact), INTERVAL, span)


def _fraction(amount: str) -> Fraction:
    if not re.fullmatch(r"\s*[+-]?\d+(\.\d+)?\s*", amount):
        raise ValueError(f"'{amount}' is not a number of units; write INTERVAL '10' MINUTE")
    return Fraction(amount)


def _size(unit: str) -> int:
    size = MICROSECONDS.get(unit.lower())
    if size is None:
        raise ValueError(
            f"'{unit}' has no fixed length; use WEEK, DAY, HOUR, MINUTE, SECOND, MILLISECOND or MICROSECOND"
        )
    return size


def _parts(text: str) -> Fraction:
    total, at = Fraction(0), 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None:
            break
        total, at = total + Fraction(match[1]) * _size(match[2]), match.end()
    if at < len(text) or not text.strip():
        raise ValueError(f"'{text}' is not an interval; write INTERVAL '10' MINUTE or INTERVAL '1 hour 30 minutes'")
    return total


def _clock(text: str, first: str, last: str) -> int:
    if first not in _CLOCK_UNITS or last not in _CLOCK_UNITS or _CLOCK_UNITS.index(first) >= _CLOCK_UNITS.index(last):
        raise ValueError(f"INTERVAL ... {first} TO {last} has no fixed length; use DAY, HOUR, MINUTE, SECOND")
    units = _CLOCK_UNITS[_CLOCK_UNITS.index(first) : _CLOCK_UNITS.index(last) + 1]
    separators = {"DAY": r"\s+", "HOUR": ":", "MINUTE": ":"}
    pattern = "".join(rf"(\d+){separators[unit] if unit != last else ''}" for unit in units)
    match = re.fullmatch(rf"\s*([+-]?){pattern}(?:\.(\d{{1,6}}))?\s*", text)
    if match is None or (match[len(units) + 2] and last != "SECOND"):
        raise ValueError(f"'{text}' is not an interval {first} TO {last}; write it like '1 02:03:04'")
    sizes = (int(match[index + 2]) * MICROSECONDS[unit.lower()] for index, unit in enumerate(units))
    whole = sum(sizes) + int((match[len(units) + 2] or "").ljust(6, "0"))
    return -whole if match[1] == "-" else whole


def check_like(pattern: str, escape: str) -> None:
    """ValueError where Spark would stop the query: a pattern whose escape character escapes nothing."""
    if len(escape) != 1:
        raise ValueError(f"ESCAPE '{escape}' is not one character")
    rest = iter(pattern)
    for character in rest:
        if character == escape and next(rest, "") not in ("_", "%", escape):
            raise ValueError(f"'{escape}' in the pattern '{pattern}' must stand before '_', '%' or itself")
