"""Suggestions for mistyped words."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice

_MOST_COMPARED = 1000
_CUTOFF = 0.6
_MOST_LISTED = 40
"""More than anyone writes by hand; a generated file with thousands of names still gets short answers soon."""


def nearest(word: str, options: Iterable[str]) -> str | None:
    """The option that the word was probably meant to be."""
    lower = word.lower()[:100]
    known = _known(tuple(islice(options, _MOST_COMPARED)))
    letters, length = _letters(lower), len(lower)
    # Most options are told apart by their letters alone, which costs far less than to align them with the word.
    close = {
        option: name
        for option, (name, others) in known.items()
        if 2 * min(length - (letters & ~others).bit_count(), len(option) - (others & ~letters).bit_count())
        >= _CUTOFF * (length + len(option))
    }
    found = get_close_matches(lower, list(close), n=1, cutoff=_CUTOFF) if close else ()
    return close[found[0]] if found else None


@lru_cache(maxsize=64)
def _known(options: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    """Each option in small letters, with its spelling and its letters."""
    return {option.lower(): (str(option), _letters(option.lower())) for option in options}


def _letters(word: str) -> int:
    """The letters of a word as a set of bits; letters that share a bit only make words look more alike."""
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) & 63)
    return bits


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
