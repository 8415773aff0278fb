"""Variables of the environment in the scalars of a file: `${NAME}`, `${NAME:-default}`, and `$${` for `${` itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from estream.errors import Place, Problem
from estream.text import Mark, Text
from estream.yaml import Items, Map

_VARIABLE = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_INSIDE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


_Wrong: TypeAlias = list[tuple[Text, Problem]]


@dataclass(frozen=True, slots=True)
class Expanded:
    """Data with every variable's value in its place; `unset` are the scalars left as written, `problems` say why."""

    data: Any
    problems: tuple[Problem, ...]
    unset: frozenset[Place]


def expand(data: Any, environment: Mapping[str, str]) -> Expanded:
    """Put the environment's values into the scalars of the data."""
    wrong: _Wrong = []
    made = _expand(data, environment, wrong, {})
    return Expanded(made, tuple(problem for _, problem in wrong), frozenset(text.place for text, _ in wrong))


def _expand(data: Any, environment: Mapping[str, str], problems: _Wrong, done: dict[int, Any]) -> Any:
    # What an alias names again is expanded, and complained about, once.
    if id(data) in done:
        return done[id(data)]
    made: Any = data
    if isinstance(data, Map):
        made = Map(data.place)
        made.update({key: _expand(value, environment, problems, done) for key, value in data.items()})
    elif isinstance(data, Items):
        made = Items(data.place)
        made.extend(_expand(value, environment, problems, done) for value in data)
    elif isinstance(data, Text) and "${" in data:
        made = _expand_text(data, environment, problems)
    done[id(data)] = made
    return made


def _expand_text(text: Text, environment: Mapping[str, str], problems: _Wrong) -> Text:
    hidden: list[tuple[str, str]] = []
    wrong: list[Problem] = []

    def value_of(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        inside = _INSIDE.fullmatch(match[1]) if match[2] else None
        if inside is None:
            what = "write '${NAME}' or '${NAME:-default}'; for the text '${' itself write '$${'"
            wrong.append(text.problem(f"{match[0][:40]!r} is no variable; {what}", match.start(), len(match[0])))
            return match[0]
        name, default = inside[1], inside[2]
        value = environment.get(name)
        if value is not None and (value or default is None):
            hidden.append((value, f"${{{name}}}"))
            return value
        if default is None:
            message = f"the environment variable '{name}' is not set; set it, or write '${{{name}:-default}}'"
            wrong.append(text.problem(message, match.start(), len(match[0])))
            return match[0]
        if not default:
            # Empty text, which is not the same as no value.
            hidden.append(("", f"${{{name}}}"))
        return str(default)

    value = _VARIABLE.sub(value_of, text)
    problems += [(text, problem) for problem in wrong]
    if wrong:
        return text
    whole = _VARIABLE.fullmatch(text)
    plain = bool(whole and whole[1] is not None) or (text.plain and bool(hidden))
    return Text(value, Mark(text.place), text.shown, tuple(hidden), plain)
