"""Suggestions for mistyped words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option that the word was probably meant to be."""
    by_lower = {option.lower(): option for option in options}
    found = get_close_matches(word.lower()[:100], list(by_lower), n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """`did you mean 'partition_by'?`, or nothing if no option is near."""
    found = nearest(word, options)
    return f"did you mean '{found}'?" if found else ""


def suggestion(word: str, options: Iterable[str]) -> str:
    """What to say after naming a wrong word: the option that is near, else all of them."""
    right = list(options)
    return did_you_mean(word, right) or (f"right: {', '.join(right)}" if right else "none is allowed here")
