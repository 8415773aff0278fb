"""A CEQ file at work in a test: rows go through the real graph, its detections to a real agenda and history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from estream.errors import EStreamError
from estream.event.detect import step
from estream.event.graph import compile_graph
from estream.event.rows import batch_schema
from estream.event.state import begin
from estream.history.database import Database
from estream.history.store import DatabaseStore
from estream.plan.build import build
from estream.plan.model import Plan
from estream.rule.action import Services
from estream.rule.agenda import Agenda, now
from estream.rule.rule import RuleSet, build_rules
from estream.scalar import Duration
from estream.settings import RuleSettings
from estream.spec.check import check
from estream.spec.checked import Checked
from estream.spec.reader import Read, parse_ceq

SECOND = 1_000_000
STREAM = """
streams:
  Rows:
    source: {format: memory}
    schema: {ts: timestamp, n: bigint, x: double, name: string}
    time: ts
"""


def load(text: str, observe: Sequence[str] = ()) -> tuple[Checked, Plan]:
    """A CEQ file checked and planned."""
    parsed = parse_ceq(text, "test.yaml", {})
    checked, problems = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    plan, more = build(checked, observe)
    errors = [one for one in (*parsed.problems, *problems, *more) if one.severity == "error"]
    if errors:
        raise EStreamError(errors)
    return checked, plan


def detections(plan: Plan, rows: Sequence[tuple[str, float, Mapping[str, Any]]]) -> pa.Table:
    """What the graph detects in rows of (event, second, attributes)."""
    graph = compile_graph(plan)
    schema = batch_schema(graph)
    rows = [row for row in rows if row[0] in graph.events]
    columns: list[list[Any]] = [
        [graph.event_code(event) for event, _, _ in rows],
        [round(second * SECOND) for _, second, _ in rows],
        list(range(1, len(rows) + 1)),
    ]
    for column in graph.columns:
        values = [round(second * SECOND) if column.name == "ts" else row.get(column.name) for _, second, row in rows]
        columns.append(values)
    return step(graph, begin(graph), pa.table(columns, schema=schema), 0, end_of_input=True).detections


def settings(**given: Any) -> RuleSettings:
    """Settings of rules, quick to fail and to try again."""
    quick: dict[str, Any] = {"backoff": Duration.of("1 ms"), "timeout": Duration.of("5 s"), **given}
    return RuleSettings(**quick)


@dataclass
class Desk:
    """A file at work; `callbacks` are actions by the name of a rule or an event."""

    text: str
    database: Database
    callbacks: Mapping[str, Sequence[Callable[..., Any]]] = field(default_factory=dict)
    settings: RuleSettings = field(default_factory=settings)
    services: Services = field(default_factory=lambda: Services(rules=Path("rules")))
    reach: Callable[[str], None] = lambda point: None
    clock: Callable[[], int] = now
    name: str = "test"
    is_stopping: Callable[[], bool] = lambda: False
    stream: str = STREAM

    def __post_init__(self) -> None:
        known = load(self.stream + self.text)[0].rules
        observe = [str(known[name].spec.on) if name in known else name for name in self.callbacks]
        self.checked, self.plan = load(self.stream + self.text, observe)
        self.rules: RuleSet = build_rules(self.checked, self.plan, self.settings, self.services, self.callbacks)
        self.store = DatabaseStore(self.database, self.name, self.clock)
        self.agenda = Agenda(
            self.rules, self.store, self.settings, self.services, self.clock, self.reach, self.is_stopping
        )

    def detect(self, *rows: tuple[str, float, Mapping[str, Any]]) -> pa.Table:
        """The detections in rows."""
        return detections(self.plan, rows)

    def __enter__(self) -> Desk:
        self.agenda.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.agenda.close()
