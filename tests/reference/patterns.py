"""`match`: patterns over one stream (docs/semantics.md, section 6), by following every way a pattern can go on.

A pattern, and what remains of it after some rows, is a tuple of parts that are matched one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation
from tests.reference.masks import aggregate, combine
from tests.reference.syntax import parse_mask

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Predicate:
    """One row for which it holds, negated one for which it does not; `.` is any row."""

    name: str
    negated: bool = False


@dataclass(frozen=True)
class Optional:
    """Not at all or once (`?`), or any number of times (`*`)."""

    part: Part
    again: bool


@dataclass(frozen=True)
class Choice:
    """One of several ways; parentheses are a choice of one."""

    ways: tuple[Rest, ...]


Part = Predicate | Optional | Choice
Rest = tuple[Part, ...]


def match(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The matches of a vector of kind `pattern`, in the form and order of the vectors.

    Besides what vectors have, a case may have `within_us` and `skip`.
    """
    pattern = parse_pattern(case["pattern"])
    define = {name: parse_mask(text) for name, text in case["define"].items()}
    output = {name: parse_mask(text) for name, text in case["output"].items()}
    partitions: dict[tuple[Any, ...], dict[tuple[int, int], Row]] = {}
    for row in case["input"]:
        key = tuple(row["attrs"][name] for name in case["partition_by"])
        if row["event"] == case["stream"] and None not in key:
            partitions.setdefault(key, {})[row["time"], row["id"]] = row
    found = [
        {
            "event": "M",
            "start": rows[0]["time"],
            "end": rows[-1]["time"],
            "ids": [row["id"] for row in rows],
            "attrs": {name: value(expression, rows[-1], rows) for name, expression in output.items()},
        }
        for partition in partitions.values()
        for rows in matches(
            [row for _, row in sorted(partition.items())],
            pattern,
            define,
            within=case.get("within_us"),
            overlap=case.get("skip") == "overlap",
        )
    ]
    return sorted(found, key=lambda one: (one["end"], one["start"], one["ids"]))


def matches(
    rows: Sequence[Row],
    pattern: Rest,
    define: Mapping[str, Expression],
    within: int | None = None,
    overlap: bool = False,
) -> Iterator[Sequence[Row]]:
    """The matches in one partition. A partial match is its first row's position and what remains of the pattern."""
    partials: set[tuple[int, Rest]] = set()
    for now, row in enumerate(rows):
        partials = {
            (begin, after)
            for begin, rest in partials | {(now, pattern)}
            if within is None or row["time"] - rows[begin]["time"] <= within
            for predicate, after in steps(rest)
            if holds(predicate, row, rows[begin:now], define)
        }
        complete = {begin for begin, rest in partials if can_end(rest)}
        if overlap:
            yield from (rows[begin : now + 1] for begin in sorted(complete))
            partials = {(begin, rest) for begin, rest in partials if begin not in complete}
        elif complete:
            yield rows[min(complete) : now + 1]
            partials = set()


def holds(predicate: Predicate, row: Row, matched: Sequence[Row], define: Mapping[str, Expression]) -> bool:
    """Whether the row satisfies a predicate; what is null does not hold."""
    if predicate.name == ".":
        return True
    return (value(define[predicate.name], row, matched) is True) is not predicate.negated


def steps(rest: Rest) -> set[tuple[Predicate, Rest]]:
    """The predicates the next row may satisfy, each with what then remains."""
    if not rest:
        return set()
    part, after = rest[0], rest[1:]
    match part:
        case Predicate():
            return {(part, after)}
        case Choice(ways):
            found = {(one, left + after) for way in ways for one, left in steps(way)}
        case Optional(inner, again):
            follow = (part, *after) if again else after
            found = {(one, left + follow) for one, left in steps((inner,))}
    return found | steps(after) if can_end((part,)) else found


def can_end(rest: Rest) -> bool:
    """Whether what remains can be matched by no row."""
    return all(
        isinstance(part, Optional) or (isinstance(part, Choice) and any(can_end(way) for way in part.ways))
        for part in rest
    )


def value(expression: Expression, row: Row, matched: Sequence[Row]) -> Any:
    """The value of an expression over a row and the rows matched before it (in `output` the whole match)."""
    match expression:
        case Literal(value=constant):
            return constant
        case Attribute(name=name):
            return row["time"] if name == "ts" else row["attrs"].get(name)
        case Aggregate(name="count", operand=None):
            return len(matched)
        case Aggregate(name="delta", operand=operand) if operand is not None:
            return value(Operation("-", (operand, Aggregate("first", operand))), row, matched)
        case Aggregate(name=name, operand=operand) if operand is not None:
            return aggregate(name, [value(operand, one, matched) for one in matched])
        case Operation(name=name, operands=operands):
            return combine(name, [value(operand, row, matched) for operand in operands])
    raise ValueError(f"{expression} has no value")


def parse_pattern(text: str) -> Rest:
    """The parts of a pattern; `x+` is `x x*`, `x{2,3}` is `x x x?`."""
    return (_choice([*re.findall(r"!?\w+|[.|*+?()]|\{\d+(?:,\d*)?\}", text), ")"]),)


def _choice(words: list[str]) -> Choice:
    ways: list[Rest] = [()]
    while (word := words.pop(0)) != ")":
        if word == "|":
            ways.append(())
        elif word == "+":
            ways[-1] += (Optional(ways[-1][-1], again=True),)
        elif word in ("*", "?"):
            ways[-1] = (*ways[-1][:-1], Optional(ways[-1][-1], again=word == "*"))
        elif word.startswith("{"):
            ways[-1] = (*ways[-1][:-1], *_repeated(ways[-1][-1], *word[1:-1].split(",")))
        else:
            ways[-1] += (_choice(words) if word == "(" else Predicate(word.lstrip("!"), word.startswith("!")),)
    return Choice(tuple(ways))


def _repeated(part: Part, least: str, most: str | None = None) -> Rest:
    """So many times: exactly `least`, or up to `most`, or any number from there on if `most` is empty."""
    if most is None:
        return (part,) * int(least)
    if not most:
        return (*(part,) * int(least), Optional(part, again=True))
    return (*(part,) * int(least), *(Optional(part, again=False),) * (int(most) - int(least)))
