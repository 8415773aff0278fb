"""Lines that compute the states a partial match can come to, for all its states at once.

Most transitions lead to the state behind or to the same one: those of one distance are a mask and a shift. What is left
is grouped by where it leads.
"""

from __future__ import annotations

from collections.abc import Iterator

from estream.event.pattern_layout import BITS
from estream.spec.automaton import Automaton, members

FULL = (1 << BITS) - 1
SHIFTS_FROM = 16
"""In an automaton of more than one word, a distance is a shift if at least one in so many states has it."""


def words_of_set(states: int, count: int) -> list[int]:
    """A set of states as words."""
    return [states >> (word * BITS) & FULL for word in range(count)]


def meets(name: str, states: int, count: int) -> str:
    """Whether the words `name0`, `name1`, ... and a set have a state in common."""
    tests = [f"{name}{word} & {bits}" for word, bits in enumerate(words_of_set(states, count)) if bits]
    return " | ".join(f"({test})" for test in tests) + " != 0" if tests else "False"


def reach_lines(automaton: Automaton, count: int) -> Iterator[str]:
    """Lines that make the words `r0`, `r1`, ... from `s0`, `s1`, ..."""
    shifts, groups = _shifts_and_groups(automaton, count)
    terms: list[list[str]] = [[] for _ in range(count)]
    for distance, states in shifts.items():
        for word, bits in enumerate(words_of_set(states, count)):
            if bits:
                for target, term in _moved(word, bits, distance):
                    terms[target].append(term)
    for word in range(count):
        yield f"r{word} = {' | '.join(terms[word]) or '0'}"
    for following, states in groups.items():
        yield f"if {meets('s', states, count)}:"
        for word, bits in enumerate(words_of_set(following, count)):
            if bits:
                yield f"    r{word} |= {bits}"


def _shifts_and_groups(automaton: Automaton, count: int) -> tuple[dict[int, int], dict[int, int]]:
    """Distances with the states that have such a transition, and sets of followers with the states they follow."""
    by_distance: dict[int, int] = {}
    for state, after in automaton.edges:
        by_distance[after - state] = by_distance.get(after - state, 0) | 1 << state
    least = 1 if count == 1 else len(automaton.predicates) // SHIFTS_FROM
    shifts = {distance: states for distance, states in by_distance.items() if states.bit_count() >= least}
    groups: dict[int, int] = {}
    for state, following in enumerate(automaton.follow):
        left = sum(1 << after for after in members(following) if after - state not in shifts)
        if left:
            groups[left] = groups.get(left, 0) | 1 << state
    return shifts, groups


def _moved(word: int, bits: int, distance: int) -> Iterator[tuple[int, str]]:
    """The terms of one word's states moved by a distance, each with the word it goes into."""
    over, shift = divmod(distance, BITS)
    inside, carried = bits & (FULL >> shift), bits & ~(FULL >> shift)
    if inside:
        yield word + over, f"((s{word} & {inside}) << {shift})" if shift else f"(s{word} & {inside})"
    if carried:
        yield word + over + 1, f"((s{word} & {carried}) >> {BITS - shift})"
