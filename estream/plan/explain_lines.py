"""What a tree for people is made of: lines with others below, and the words for columns, lengths and moments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from estream.duration import format_duration as length
from estream.hidden import HiddenNumber
from estream.plan.model import Column

__all__ = ["Line", "columns", "joined", "length", "moment"]


@dataclass(frozen=True, slots=True)
class Line:
    """One thing: its name, what the name stands for, details, and what it is made of."""

    name: str
    details: tuple[str, ...] = ()
    below: tuple[Line, ...] = ()
    meaning: str = ""
    is_name: bool = True
    """False where the text is no name, and so needs no stress."""


def joined(*words: str) -> tuple[str, ...]:
    """The details that there are."""
    return tuple(filter(None, words))


def columns(listed: Iterable[Column]) -> str:
    """Names and types; a type that only Spark can tell is left out."""
    return ", ".join(f"{each.name} {each.type}" if each.type.is_known else each.name for each in listed)


def moment(microseconds: int) -> str:
    """A time as people write it; one that came from a variable is shown as that."""
    if isinstance(microseconds, HiddenNumber):
        return microseconds.shown
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)).isoformat().replace("+00:00", "Z")
