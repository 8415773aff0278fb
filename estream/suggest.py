"""Suggestions for mistyped words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_MOST_COMPARED = 1000
_MOST_LISTED = 40
"""More than anyone writes by hand; a generated file with thousands of names still gets short answers soon."""


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option that the word was probably meant to be."""
    by_lower = {option.lower(): option for option in islice(options, _MOST_COMPARED)}
    found = get_close_matches(word.lower()[:100], list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """`did you mean 'partition_by'?`, or nothing if no option is near."""
    found = nearest(word, options)
    return f"did you mean '{found}'?" if found else ""


def suggestion(word: str, options: Iterable[str]) -> str:
    """What to say after naming a wrong word: the option that is near, else all of them."""
    right = list(options)
    return did_you_mean(word, right) or (f"right: {listed(right)}" if right else "none is allowed here")


def listed(names: Iterable[str]) -> str:
    """The names for a message, with no more than the first of very many."""
    every = list(names)
    more = f" and {len(every) - _MOST_LISTED:,} more" if len(every) > _MOST_LISTED else ""
    return ", ".join(every[:_MOST_LISTED]) + more
