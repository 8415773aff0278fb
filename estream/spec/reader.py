"""CEQ files from text and from disk: located, with variables, secrets and includes; every problem in one go."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from estream.content import read_content
from estream.errors import Place, Problem
from estream.spec.model import SECTIONS, Ceq, Event, EventName, Name, Query, Rule, Stream, Table
from estream.spec.secrets import ReadSecret, no_files, read_secret, read_secrets
from estream.text import Text
from estream.validation import describe, validate
from estream.variables import expand
from estream.yaml import LARGEST, Map, read_yaml

_PARTS: dict[str, Any] = {"streams": Stream, "tables": Table, "queries": Query, "events": Event, "rules": Rule}
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)

PartName = tuple[str, str]
"""A section and a name in it."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One file: its right parts, its problems, the names of its wrong parts, its lines."""

    ceq: Ceq
    problems: tuple[Problem, ...]
    broken: frozenset[PartName]
    lines: list[str]
    readable: bool = True


@dataclass(frozen=True, slots=True)
class Read:
    """A file with all it includes; `ceq` is None where the file itself could not be read."""

    ceq: Ceq | None
    problems: tuple[Problem, ...]
    sources: dict[str, list[str]]
    broken: frozenset[PartName]


def parse_ceq(text: str | bytes, file: str, environment: Mapping[str, str], secret: ReadSecret = no_files) -> Parsed:
    """The parts that a text defines; `secret` reads the files that `*_file` keys name."""
    document = read_yaml(text, file)
    problems = list(document.problems)
    root = document.data
    if not isinstance(root, Map):
        if root is not None:
            problems.append(Problem(root.place, f"the file is {describe(root)}, not a map"))
        return Parsed(Ceq(), tuple(problems), frozenset(), document.lines, readable=False)
    reading = _Reading(environment, secret, problems)
    head = Map(root.place)
    head.update({key: value for key, value in root.items() if key not in SECTIONS})
    ceq = reading.head(head)
    sections = {str(name): reading.section(name, data) for name, data in root.items() if name in SECTIONS}
    problems.sort(key=lambda problem: problem.place)
    return Parsed(ceq.model_copy(update=sections), tuple(problems), frozenset(reading.broken), document.lines)


@dataclass(slots=True)
class _Reading:
    """The parts of one file, one after the other."""

    environment: Mapping[str, str]
    secret: ReadSecret
    problems: list[Problem]
    broken: set[PartName] = field(default_factory=set)

    def head(self, data: Map) -> Ceq:
        """What stands beside the sections; a wrong key is told and left out."""
        ceq: Ceq | None = self._valid(Ceq, data, "the file")
        if ceq is not None:
            return ceq
        known = [key for key in data if key in Ceq.model_fields]
        return Ceq.model_validate({key: data[key] for key in known if self._stands_alone(data, key)})

    def _stands_alone(self, data: Map, key: Text) -> bool:
        alone = Map(data.place)
        alone[key] = expand(data[key], self.environment).data
        return not validate(_adapter(Ceq), Ceq, alone, "the file")[1]

    def section(self, name: str, data: Any) -> dict[Text, Any]:
        """The right parts of a section by their names."""
        if isinstance(data, Text) and data.is_nothing:
            return {}
        if not isinstance(data, Map):
            self.problems.append(Problem(data.place, f"{name} is {describe(data)}, not a map of names"))
            return {}
        parts = {key: self._part(name, key, value) for key, value in data.items()}
        self.broken |= {(name, str(key)) for key, part in parts.items() if part is None}
        return {key: part for key, part in parts.items() if part is not None}

    def _part(self, section: str, name: Text, data: Any) -> Any:
        kind = EventName if section == "events" else Name
        owner = f"{SECTIONS[section]} {name.brief}"
        _, wrong_name = validate(_adapter(kind), kind, name, owner, name)
        self.problems += wrong_name
        part = self._valid(_PARTS[section], data, owner, name)
        return None if wrong_name else part

    def _valid(self, kind: Any, data: Any, owner: str, name: Text | None = None) -> Any:
        expanded = expand(data, self.environment)
        filled, unread = read_secrets(expanded.data, owner, self.secret)
        part, wrong = validate(_adapter(kind), kind, filled, owner, name)
        # A value that could not be had is told once, not again as a wrong value.
        told = expanded.unset | {problem.place for problem in unread}
        self.problems += [*expanded.problems, *unread, *(found for found in wrong if found.place not in told)]
        return None if told else part


def read_ceq(path: Path | str, root: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Read:
    """A file with all it includes; includes stay inside `root`, which is the file's folder if not given."""
    start = Path(path)
    inside = Path(root) if root is not None else start.parent
    files = _Files(inside.resolve(), os.environ if environment is None else environment)
    parsed = files.read(start, (), Place(str(path), 1, 1))
    return Read(
        files.merged(_named(parsed.ceq, start)) if parsed is not None and parsed.readable else None,
        tuple(files.problems),
        files.sources,
        frozenset(files.broken),
    )


def _named(ceq: Ceq, path: Path) -> Ceq:
    """The file under its own name, which is that of the path if it gives none."""
    if "name" in ceq.model_fields_set:
        return ceq
    stem = re.sub(r"\W", "_", path.stem, flags=re.ASCII)
    return ceq.model_copy(update={"name": Text(f"_{stem}" if stem[0].isdigit() else stem)})


@dataclass(slots=True)
class _Files:
    """Files read so far, included ones before those that include them."""

    root: Path
    environment: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    sources: dict[str, list[str]] = field(default_factory=dict)
    broken: set[PartName] = field(default_factory=set)
    parts: dict[str, dict[Text, Any]] = field(default_factory=lambda: {name: {} for name in SECTIONS})
    _seen: set[Path] = field(default_factory=set)
    _defined: dict[PartName, Place] = field(default_factory=dict)

    def read(self, path: Path, chain: tuple[Path, ...], asked: Place) -> Parsed | None:
        """Read a file and what it includes; `chain` are the files that led here, `asked` is where."""
        try:
            content = read_content(path, LARGEST)
        except ValueError as error:
            self.problems.append(Problem(asked, f"cannot read '{path}': {error}"))
            return None
        self._seen.add(path.resolve())
        secret = read_secret(path.parent)
        parsed = parse_ceq(content, str(path), self.environment, secret)
        self.sources[str(path)] = parsed.lines
        self.problems += parsed.problems
        self.broken |= parsed.broken
        for include in parsed.ceq.include:
            self._include(include, path, (*chain, path))
        self._add(parsed)
        return parsed

    def _include(self, include: Text, by: Path, chain: tuple[Path, ...]) -> None:
        path = Path(os.path.normpath(by.parent / include))
        try:
            target = path.resolve()
        except (OSError, RuntimeError, ValueError):
            self.problems.append(include.problem(f"include {include.shown!r} is not a path"))
            return
        steps = [step.resolve() for step in chain]
        if target in steps:
            names = " -> ".join(str(step) for step in (*chain[steps.index(target) :], path))
            self.problems.append(include.problem(f"files include each other: {names}"))
        elif not target.is_relative_to(self.root):
            self.problems.append(include.problem(f"include {include.shown!r} is outside the project's folder"))
        elif not target.is_file():
            self.problems.append(include.problem(f"include {include.shown!r}: there is no such file"))
        elif target not in self._seen:
            self.read(path, chain, include.place)

    def _add(self, parsed: Parsed) -> None:
        for section, known in self.parts.items():
            for name, part in getattr(parsed.ceq, section).items():
                other = self._defined.setdefault((section, str(name)), name.place)
                if other is name.place:
                    known[name] = part
                else:
                    message = f"{SECTIONS[section]} '{name}' is defined twice; the other is at {other}"
                    self.problems.append(name.problem(message))

    def merged(self, ceq: Ceq) -> Ceq:
        """The file's own head with the parts of all files."""
        return ceq.model_copy(update=self.parts)
