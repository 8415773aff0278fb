"""The automaton of a pattern, by the direct construction: one state for each predicate of the text, no empty steps.

A state is the last predicate that was satisfied. Sets of states are whole numbers, bit n for state n.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from estream.spec.regex import Choice, Predicate, Regex, Repeat, Sequence


@dataclass(frozen=True, slots=True)
class Automaton:
    """What may come after what. A match ends at its first final state, so nothing follows a final one."""

    predicates: tuple[Predicate, ...]
    """What a row satisfies to be in the state; states are in the order of the text."""
    first: int
    """States of a row that begins a match."""
    final: int
    """States that complete a match."""
    follow: tuple[int, ...]
    """For each state those of the next row."""

    @property
    def is_unbounded(self) -> bool:
        """Whether a match may have any number of rows: whether some state can be come to from itself."""
        order: TopologicalSorter[int] = TopologicalSorter(
            {state: list(members(following)) for state, following in enumerate(self.follow)}
        )
        try:
            order.prepare()
        except CycleError:
            return True
        return False

    @property
    def edges(self) -> Iterator[tuple[int, int]]:
        """The transitions between states, those from the start apart (`first`)."""
        return ((state, after) for state, following in enumerate(self.follow) for after in members(following))


def members(states: int) -> Iterator[int]:
    """The states of a set, ascending."""
    while states:
        lowest = states & -states
        yield lowest.bit_length() - 1
        states ^= lowest


def automaton_of(regex: Regex, never: frozenset[Predicate] = frozenset()) -> Automaton:
    """The automaton of a pattern, with the states only that a match can be in; no row satisfies those of `never`."""
    return _Construction(never).automaton(regex)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the pattern: states that can be its first and its last, and whether it can be no row at all."""

    first: int
    last: int
    nullable: bool


_NOTHING = _Part(0, 0, True)


class _Construction:
    def __init__(self, never: frozenset[Predicate]) -> None:
        self.never = never
        self.predicates: list[Predicate] = []
        self.follow: list[int] = []

    def automaton(self, regex: Regex) -> Automaton:
        whole = self.part(regex)
        for state in members(whole.last):
            self.follow[state] = 0
        kept = list(members(self.reachable(self.possible(whole.first))))
        place = {state: number for number, state in enumerate(kept)}

        def renumbered(states: int) -> int:
            return sum(1 << place[state] for state in members(states) if state in place)

        return Automaton(
            tuple(self.predicates[state] for state in kept),
            renumbered(whole.first),
            renumbered(whole.last),
            tuple(renumbered(self.follow[state]) for state in kept),
        )

    def reachable(self, states: int) -> int:
        new = states
        while new:
            after = 0
            for state in members(new):
                after |= self.possible(self.follow[state])
            new = after & ~states
            states |= new
        return states

    def possible(self, states: int) -> int:
        return sum(1 << state for state in members(states) if self.predicates[state] not in self.never)

    def part(self, regex: Regex) -> _Part:
        match regex:
            case Predicate():
                self.predicates.append(regex)
                self.follow.append(0)
                state = 1 << (len(self.predicates) - 1)
                return _Part(state, state, False)
            case Sequence():
                return self.sequence([self.part(part) for part in regex.parts])
            case Choice():
                parts = [self.part(part) for part in regex.parts]
                first = last = 0
                for part in parts:
                    first, last = first | part.first, last | part.last
                return _Part(first, last, any(part.nullable for part in parts))
            case Repeat():
                return self.repeat(regex)

    def repeat(self, regex: Repeat) -> _Part:
        """`x{2,4}` is `x x (x (x)?)?`, `x{2,}` is `x x+`."""
        copies = max(regex.least, 1 if regex.most is None else regex.most)
        parts = [self.part(regex.part) for _ in range(copies)]
        if regex.most is None:
            self.connect(parts[-1], parts[-1])
        tail = _NOTHING
        for part in reversed(parts[regex.least :]):
            whole = self.sequence([part, tail])
            tail = _Part(whole.first, whole.last, True)
        return self.sequence([*parts[: regex.least], tail])

    def sequence(self, parts: list[_Part]) -> _Part:
        whole = _NOTHING
        for part in parts:
            self.connect(whole, part)
            whole = _Part(
                whole.first | (part.first if whole.nullable else 0),
                part.last | (whole.last if part.nullable else 0),
                whole.nullable and part.nullable,
            )
        return whole

    def connect(self, one: _Part, other: _Part) -> None:
        for state in members(one.last):
            self.follow[state] |= other.first
