"""Small CEQ files for the passes: leaf events A to D with attributes k, v, w and name, temporal events T and U."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from estream.errors import Problem
from estream.plan.build import build
from estream.plan.model import Node, Plan
from estream.spec.check import check
from estream.spec.checked import Checked
from estream.spec.reader import Read, parse_ceq

Parts = Mapping[str, Mapping[str, object]]

STREAM = {
    "source": {"format": "memory"},
    "schema": {"ts": "timestamp", "n": "bigint", "k": "int", "v": "int", "w": "int", "name": "string"},
    "time": "ts",
}
LEAVES: Parts = {name: {"on": "S", "id": ["n"]} for name in "ABCD"}
TEMPORALS: Parts = {"T": {"every": "1 min"}, "U": {"every": "1 h"}}


@dataclass(frozen=True)
class Planned:
    """A plan, and the problems that planning found."""

    plan: Plan
    problems: Sequence[Problem]
    lines: Sequence[str]

    def node(self, text: str) -> Node:
        """The one node that stands for an expression."""
        (found,) = [node for node in self.plan.nodes if node.text == text]
        return found

    @property
    def signatures(self) -> dict[str, str]:
        """Every node's text and signature."""
        return {node.text: node.signature for node in self.plan.nodes}

    @property
    def errors(self) -> list[tuple[str, str]]:
        """What is under the caret of every error, and its message."""
        return [(self._marked(each), each.message) for each in self.problems if each.severity == "error"]

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """What is under the caret of every warning, and its message."""
        return [(self._marked(each), each.message) for each in self.problems if each.severity == "warning"]

    def _marked(self, problem: Problem) -> str:
        place = problem.place
        return self.lines[place.line - 1][place.column - 1 : place.column - 1 + place.length]


def checked(
    events: Parts, rules: Parts | None = None, environment: Mapping[str, str] | None = None
) -> tuple[Checked, list[str]]:
    """The events and rules, which the check must find right, and the lines of the file."""
    parts = {"streams": {"S": STREAM}, "events": {**LEAVES, **TEMPORALS, **events}, "rules": dict(rules or {})}
    text = yaml.safe_dump(parts, sort_keys=False, width=10_000)
    parsed = parse_ceq(text, "test.yaml", environment or {})
    found, problems = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    assert [each for each in (*parsed.problems, *problems) if each.severity == "error"] == []
    return found, text.splitlines()


def planned(
    events: Parts,
    rules: Parts | None = None,
    observe: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Planned:
    """The plan of some events and rules."""
    found, lines = checked(events, rules, environment)
    plan, problems = build(found, observe)
    return Planned(plan, problems, lines)


def one(when: str, **settings: object) -> Planned:
    """The plan of one event, called E."""
    return planned({"E": {"when": when, **settings}})


def rule(event: str, **settings: object) -> Mapping[str, object]:
    """A rule that asks for no attribute."""
    return {"on": event, "actions": [{"log": "seen"}], **settings}
