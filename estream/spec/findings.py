"""What the checks of a CEQ file have found so far: right parts, wrong parts, what each part gives, every problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from estream.errors import EStreamError, Problem, Severity
from estream.spec.checked import CheckedEvent, CheckedQuery, CheckedRule, Columns
from estream.spec.expression import Expression
from estream.spec.expression_parser import parse_expression
from estream.spec.model import Ceq
from estream.spec.sql import Relation
from estream.spec.type_check import Scope, check_types, require_boolean
from estream.spec.types import spelling
from estream.suggest import did_you_mean, listed
from estream.text import Text

_MOST_IN_CYCLE = 12


@dataclass(slots=True)
class Findings:
    """Grows from check to check. A name that is broken is known, and silences what depends on it."""

    ceq: Ceq
    broken: set[tuple[str, str]]
    problems: list[Problem] = field(default_factory=list)
    relations: dict[str, Relation] = field(default_factory=dict)
    """Streams, queries and tables by name, the wrong ones too, as far as their columns are known."""
    queries: dict[str, CheckedQuery] = field(default_factory=dict)
    events: dict[str, CheckedEvent] = field(default_factory=dict)
    rules: dict[str, CheckedRule] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    """Streams, queries and tables that something reads."""
    used_events: set[str] = field(default_factory=set)
    _errors: int = 0
    _counted: int = 0
    _any_event: dict[str, Columns | None] = field(default_factory=dict)

    def say(
        self, text: Text, message: str, offset: int | None = None, hint: str = "", severity: Severity = "error"
    ) -> None:
        """Note a problem at a text."""
        self.problems.append(text.problem(message, offset, hint=hint or None, severity=severity))

    def errors(self) -> int:
        """How many errors there are so far: a part is right if checking it adds none."""
        self._errors += sum(problem.severity == "error" for problem in self.problems[self._counted :])
        self._counted = len(self.problems)
        return self._errors

    def relation(self, name: Text, subject: str, what: str) -> Relation:
        """The stream or query of that name; an unknown one is told once and gives unknown columns."""
        self.used.add(name)
        tables = self.ceq.tables
        if name in self.relations and name not in tables:
            return self.relations[name]
        if name in tables:
            self.say(name, f"{subject}: {what} names table '{name}'; it needs a stream or a query")
        elif not self.is_broken(("streams", "queries", "tables"), name):
            known = [known for known in self.relations if known not in tables]
            there = f"the file has {listed(known) or 'none'}"
            self.say(name, f"{subject}: unknown stream or query '{name}'; {there}", hint=did_you_mean(name, known))
        return Relation(None)

    def tell(self, error: EStreamError, subject: str) -> None:
        """Note the problems of a text that could not be read."""
        self.problems += [replace(problem, message=f"{subject}: {problem.message}") for problem in error.problems]

    def called(self, name: str) -> str:
        """A stream or query with what it is, for messages."""
        return f"{'stream' if name in self.ceq.streams else 'query'} '{name}'"

    def columns_of(self, event: str) -> Columns | None:
        """The attributes of a leaf event; None if they are not known."""
        return self.events[event].columns if event in self.events else None

    def any_event(self) -> dict[str, Columns | None]:
        """Every event of the file, with the attributes that are known: for what depends on a wrong part.

        Asked for when all leaf events are checked: composite ones have no attributes.
        """
        if not self._any_event:
            names = [*self.ceq.events, *(name for section, name in self.broken if section == "events")]
            self._any_event = {str(name): self.columns_of(name) for name in names}
        return self._any_event

    def is_broken(self, sections: Iterable[str], name: str) -> bool:
        """True if a part of that name is there but wrong."""
        return any((section, name) in self.broken for section in sections)

    def columns_exist(
        self, names: Iterable[Text], columns: Columns | None, subject: str, what: str, source: str
    ) -> bool:
        """Tells each name that is none of the columns; True if all are."""
        missing = [name for name in names if columns is not None and spelling(name, columns) is None]
        for name in missing:
            there = listed(columns or ())
            self.say(
                name, f"{subject}: {what} names '{name}'; {source} has {there}", hint=did_you_mean(name, columns or ())
            )
        return not missing

    def typed(self, text: Text | None, scope: Scope, boolean: bool = False) -> Expression | None:
        """The typed tree of an expression; None if there is none or it is wrong."""
        if text is None:
            return None
        try:
            expression, problems = check_types(parse_expression(text, scope.subject), scope, text)
        except EStreamError as error:
            self.problems += error.problems
            return None
        if boolean and not problems:
            problems = require_boolean(expression, scope, text)
        self.problems += problems
        return None if problems else expression


def in_order(needs: Mapping[str, Iterable[str]]) -> tuple[list[str], list[list[str]]]:
    """Names after all that they need, and the cycles, whose names are left out."""
    graph = {name: [need for need in needed if need in needs] for name, needed in needs.items()}
    cycles: list[list[str]] = []
    while True:
        sorter = TopologicalSorter(graph)
        try:
            return list(sorter.static_order()), cycles
        except CycleError:
            found = _cycles(graph)
            cycles += found
            gone = {name for cycle in found for name in cycle}
            graph = {
                name: [need for need in needed if need not in gone]
                for name, needed in graph.items()
                if name not in gone
            }


def _cycles(graph: Mapping[str, list[str]]) -> list[list[str]]:
    """Cycles that have no name in common, each from its first name back to it; at least one, if there are any."""
    blocked = _blocked(graph)
    seen: dict[str, int] = {}
    cycles = []
    for number, start in enumerate(blocked):
        path, name = [], start
        while name not in seen:
            seen[name] = number
            path.append(name)
            # A blocked name needs another one: following the first never ends but in a cycle.
            name = next(need for need in graph[name] if need in blocked)
        if seen[name] == number:
            cycle = path[path.index(name) :]
            cycles.append([*cycle, name])
    return cycles


def _blocked(graph: Mapping[str, list[str]]) -> dict[str, None]:
    """Names in a cycle and those that need one, in the order of definition."""
    sorter = TopologicalSorter(graph)
    with suppress(CycleError):
        sorter.prepare()
    free: set[str] = set()
    while ready := sorter.get_ready():
        free.update(ready)
        sorter.done(*ready)
    return {name: None for name in graph if name not in free}


def around(cycle: list[str], word: str) -> str:
    """A cycle in words, with the first names only of a very long one."""
    shown = cycle if len(cycle) <= _MOST_IN_CYCLE else [*cycle[: _MOST_IN_CYCLE - 2], "...", cycle[-1]]
    return word.join(shown)
