"""Problems as people and programs read them: text with the line and a caret, or JSON."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from estream.errors import Problem

WIDTH = 160
"""Longest piece of a source line that is shown."""

MOST_SHOWN = 100
"""Problems of one file that people are shown; programs get all."""

_RED, _YELLOW, _BLUE, _BOLD, _PLAIN = "\033[31m", "\033[33m", "\033[34m", "\033[1m", "\033[0m"


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once, by file, line and column."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: (problem.place, problem.message)))


def render(problems: Iterable[Problem], sources: Mapping[str, Sequence[str]], color: bool = False) -> str:
    """Problems with their line and a caret under their place, the first of very many; no text if there is none."""
    return "".join(
        line
        for file, of_file in groupby(in_order(problems), key=lambda problem: problem.place.file)
        for line in _render_file(file, list(of_file), sources.get(file, ()), color)
    )


def _render_file(file: str, problems: Sequence[Problem], lines: Sequence[str], color: bool) -> Iterator[str]:
    yield from (_render(problem, lines, color) for problem in problems[:MOST_SHOWN])
    if len(problems) > MOST_SHOWN:
        yield f"{printable(file)}: and {len(problems) - MOST_SHOWN:,} more; estream check --format json gives all\n"


def to_json(problems: Iterable[Problem]) -> str:
    """The problems as one JSON object, with the number of errors and warnings."""
    listed = in_order(problems)
    return json.dumps(
        {
            "errors": sum(problem.severity == "error" for problem in listed),
            "warnings": sum(problem.severity == "warning" for problem in listed),
            "problems": [
                {
                    "file": problem.place.file,
                    "line": problem.place.line,
                    "column": problem.place.column,
                    "length": problem.place.length,
                    "severity": problem.severity,
                    "message": problem.message,
                    "hint": problem.hint,
                }
                for problem in listed
            ],
        },
        indent=2,
        ensure_ascii=False,
    )


def summary(problems: Iterable[Problem]) -> str:
    """How many there are, in words: `2 errors, 1 warning`."""
    listed = in_order(problems)
    counts = ((kind, sum(problem.severity == kind for problem in listed)) for kind in ("error", "warning"))
    return ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counts if count) or "no problems"


def printable(text: str) -> str:
    """The text without what a terminal would act on: control characters of a file must not move the cursor."""
    return "".join(
        character if character.isprintable() else " " if character == "\t" else "\N{REPLACEMENT CHARACTER}"
        for character in text
    )


def _render(problem: Problem, lines: Sequence[str], color: bool) -> str:
    head = "\n".join(map(printable, str(problem).splitlines()))
    tint = _RED if problem.severity == "error" else _YELLOW
    if color:
        place = printable(str(problem.place))
        head = f"{_BOLD}{place}{_PLAIN}{tint}{head.removeprefix(place)}{_PLAIN}"
    if not 1 <= problem.place.line <= len(lines):
        return head + "\n"
    return head + "\n" + _excerpt(problem, lines[problem.place.line - 1], tint if color else "")


def _excerpt(problem: Problem, line: str, tint: str) -> str:
    line = line.rstrip("\r\n")
    column = min(problem.place.column - 1, len(line))
    cut = max(0, column - WIDTH // 2) if len(line) > WIDTH else 0
    shown = printable(line[cut : cut + WIDTH])
    before, under = shown[: column - cut], shown[column - cut : column - cut + problem.place.length]
    number = str(problem.place.line)
    margin, plain, edge = (_BLUE, _PLAIN, tint) if tint else ("", "", "")
    caret = " " * _columns(before) + edge + "^" * max(_columns(under), 1) + plain
    return f"  {margin}{number} |{plain} {shown}\n  {margin}{' ' * len(number)} |{plain} {caret}\n"


def _columns(text: str) -> int:
    """How many columns of a terminal the text takes: characters of East Asia take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
