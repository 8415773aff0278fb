"""Patterns of pattern events: regular expressions over predicates (docs/semantics.md, section 6)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from estream.errors import EStreamError, Problem
from estream.text import Text

MAX_LENGTH = 10_000
MAX_DEPTH = 50
MAX_STATES = 1_000
"""Predicates after `{n,m}` is written out: what an automaton is made of."""

Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A row for which the predicate holds, with `!` one for which it does not; the name `.` is any row."""

    name: str
    negated: bool = False
    span: Span = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of them."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """So often: at least `least` times, at most `most` (None: any number)."""

    part: Regex
    least: int
    most: int | None
    span: Span = field(default=(0, 0), compare=False)


Regex: TypeAlias = Predicate | Sequence | Choice | Repeat

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<repeat>\{[^{}]*\})|(?P<sign>[.|*+?()!])|(?P<wrong>\S))", re.ASCII
)
_REPEAT = re.compile(r"\{\s*([0-9]{1,6})\s*(?:(,)\s*([0-9]{1,6})?\s*)?\}")
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_EXPECTED = "a predicate, '.', '!' or '('"


def parse_pattern(text: Text) -> Regex:
    """The tree of a pattern; EStreamError says where it is wrong."""
    if len(text) > MAX_LENGTH:
        raise EStreamError([text.problem(f"the pattern has {len(text)} characters; at most {MAX_LENGTH} are allowed")])
    regex = _Parser(text).whole()
    if size(regex) > MAX_STATES:
        raise EStreamError(
            [text.problem(f"the pattern stands for {size(regex)} rows; at most {MAX_STATES} are allowed")]
        )
    return regex


def to_text(regex: Regex) -> str:
    """The pattern as a user would write it."""
    match regex:
        case Predicate():
            return f"!{regex.name}" if regex.negated else regex.name
        case Choice():
            return " | ".join(to_text(part) for part in regex.parts)
        case Sequence():
            return " ".join(_bracketed(part, Choice) for part in regex.parts)
        case Repeat():
            return _bracketed(regex.part, Choice, Sequence, Repeat) + _times(regex)


def predicates(regex: Regex) -> tuple[Predicate, ...]:
    """Every predicate where it stands, from left to right, `.` too."""
    return tuple(each for each in _walk(regex) if isinstance(each, Predicate))


def is_nullable(regex: Regex) -> bool:
    """True if the pattern can match no row at all."""
    match regex:
        case Predicate():
            return False
        case Choice():
            return any(map(is_nullable, regex.parts))
        case Sequence():
            return all(map(is_nullable, regex.parts))
        case Repeat():
            return regex.least == 0 or is_nullable(regex.part)


def first(regex: Regex) -> tuple[Predicate, ...]:
    """The predicates on transitions out of the start state."""
    match regex:
        case Predicate():
            return (regex,)
        case Choice():
            return tuple(each for part in regex.parts for each in first(part))
        case Repeat():
            return first(regex.part) if regex.most != 0 else ()
        case Sequence():
            found: list[Predicate] = []
            for part in regex.parts:
                found += first(part)
                if not is_nullable(part):
                    break
            return tuple(found)


def trailing(regex: Regex) -> Repeat | None:
    """A repetition at the end that adds nothing, for a match is reported at the first row that completes it."""
    while isinstance(regex, Sequence):
        regex = regex.parts[-1]
    return regex if isinstance(regex, Repeat) and regex.most != regex.least else None


def is_unbounded(regex: Regex) -> bool:
    """True if a match may have any number of rows before its last one."""
    return any(isinstance(each, Repeat) and each.most is None for each in _walk(regex))


def size(regex: Regex) -> int:
    """How many predicates there are when repetitions are written out."""
    if isinstance(regex, Predicate):
        return 1
    if isinstance(regex, Repeat):
        return size(regex.part) * max(regex.least, regex.most or 1, 1)
    return sum(map(size, regex.parts))


def _walk(regex: Regex) -> Iterator[Regex]:
    yield regex
    if not isinstance(regex, Predicate):
        for part in (regex.part,) if isinstance(regex, Repeat) else regex.parts:
            yield from _walk(part)


def _bracketed(regex: Regex, *kinds: type) -> str:
    return f"({to_text(regex)})" if isinstance(regex, kinds) else to_text(regex)


def _times(repeat: Repeat) -> str:
    for sign, (least, most) in _SIGNS.items():
        if (repeat.least, repeat.most) == (least, most):
            return sign
    if repeat.least == repeat.most:
        return f"{{{repeat.least}}}"
    return f"{{{repeat.least},{'' if repeat.most is None else repeat.most}}}"


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


class _Parser:
    """Recursive descent with a cap on depth: choice, then sequence, then repetition, then one row."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.tokens = [
            _Token(found.lastgroup or "", found[found.lastgroup or 0], found.start(found.lastgroup or 0))
            for found in _TOKEN.finditer(text)
        ]
        self.at = 0

    def whole(self) -> Regex:
        regex = self._choice(0)
        if self.at < len(self.tokens):
            raise self._wrong("a predicate, '|' or the end")
        return regex

    def _choice(self, depth: int) -> Regex:
        parts = [self._sequence(depth)]
        while self._take("|"):
            parts.append(self._sequence(depth))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self, depth: int) -> Regex:
        parts = [self._repetition(depth)]
        while self._next() and (self._next_kind() == "name" or self._next() in (".", "!", "(")):
            parts.append(self._repetition(depth))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repetition(self, depth: int) -> Regex:
        start = self.tokens[self.at].start if self.at < len(self.tokens) else len(self.text)
        part = self._row(depth)
        repeats = 0
        while self._next() in _SIGNS or self._next_kind() == "repeat":
            token = self.tokens[self.at]
            least, most = _SIGNS[token.text] if token.text in _SIGNS else self._count(token)
            self.at += 1
            repeats += 1
            if depth + repeats > MAX_DEPTH:
                raise self._too_deep(token.start)
            part = Repeat(part, least, most, (start, token.start + len(token.text)))
        return part

    def _row(self, depth: int) -> Regex:
        if depth > MAX_DEPTH:
            raise self._too_deep(self.tokens[self.at].start if self.at < len(self.tokens) else 0)
        start = self.tokens[self.at].start if self.at < len(self.tokens) else 0
        if self._take("("):
            inner = self._choice(depth + 1)
            if not self._take(")"):
                raise self._wrong("a predicate, '|' or ')'")
            return inner
        negated = self._take("!")
        if self._next_kind() == "name" or (self._next() == "." and not negated):
            token = self.tokens[self.at]
            self.at += 1
            return Predicate(token.text, negated, (start, token.start + len(token.text)))
        raise self._wrong("a predicate's name" if negated else _EXPECTED)

    def _count(self, token: _Token) -> tuple[int, int | None]:
        found = _REPEAT.fullmatch(token.text)
        least = int(found[1]) if found else 0
        most = None if found is None or (found[2] and not found[3]) else int(found[3] or found[1])
        if found is None or most == 0 or (most is not None and most < least):
            wrong = Text(token.text).brief
            message = f"{wrong} is no repetition; write {{n}}, {{n,}} or {{n,m}} with n <= m and m >= 1"
            raise EStreamError([self.text.problem(message, token.start, len(token.text))])
        return least, most

    def _next(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _next_kind(self) -> str:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""

    def _take(self, sign: str) -> bool:
        taken = self._next() == sign
        self.at += taken
        return taken

    def _wrong(self, expected: str) -> EStreamError:
        return EStreamError([self._problem(expected)])

    def _problem(self, expected: str) -> Problem:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            message = f"found '{token.text}' in the pattern, expected {expected}"
            return self.text.problem(message, token.start, len(token.text))
        ending = "the pattern ends" if self.tokens else "the pattern is empty"
        return self.text.problem(f"{ending}, expected {expected}", len(self.text.rstrip()))

    def _too_deep(self, offset: int) -> EStreamError:
        return EStreamError([self.text.problem(f"the pattern is nested deeper than {MAX_DEPTH}", offset)])
