"""Durations as people write them, in microseconds."""

from __future__ import annotations

import re
from fractions import Fraction

from estream.hidden import HiddenNumber

_WORDS = {
    1: "us microsecond microseconds",
    1_000: "ms millisecond milliseconds",
    1_000_000: "s sec secs second seconds",
    60_000_000: "min mins minute minutes",
    3_600_000_000: "h hr hrs hour hours",
    86_400_000_000: "d day days",
    604_800_000_000: "week weeks",
}
MICROSECONDS = {word: size for size, words in _WORDS.items() for word in words.split()}
"""Every unit's word and its length."""

_MOST_DIGITS = 40
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def parse_duration(text: str) -> int:
    """The duration in microseconds; ValueError says what is wrong with the text."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration; write a number and a unit, like '10 seconds' or '5 min'")
    return duration(match[1], match[2])


def duration(number: str, unit: str) -> int:
    """Number times unit, a whole and positive number of microseconds."""
    size = MICROSECONDS.get(unit) or MICROSECONDS.get(unit.lower())
    if size is None:
        raise ValueError(f"{unit!r} is not a unit of time; use us, ms, s, min, h, d or their words")
    if len(number) > _MOST_DIGITS:
        raise ValueError(f"'{number[:_MOST_DIGITS]}...' has too many digits for a duration")
    exact = Fraction(number) * size
    if exact.denominator != 1 or exact <= 0:
        raise ValueError(f"'{number} {unit}' is not a positive whole number of microseconds")
    if exact >= 2**62:
        raise ValueError(f"'{number} {unit}' is too long")
    return int(exact)


def format_duration(microseconds: int) -> str:
    """The shortest exact way to write it: 90_000_000 is '90 s'; one that came from a variable is shown as that."""
    if isinstance(microseconds, HiddenNumber):
        return microseconds.shown
    for size, unit in (
        (86_400_000_000, "d"),
        (3_600_000_000, "h"),
        (60_000_000, "min"),
        (1_000_000, "s"),
        (1_000, "ms"),
    ):
        if microseconds % size == 0:
            return f"{microseconds // size} {unit}"
    return f"{microseconds} us"
