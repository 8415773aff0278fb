"""A CEQ file made sure of: names resolved, expressions typed, every problem told in one go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from estream.errors import Problem
from estream.spec.check_events import check_events
from estream.spec.check_queries import check_queries
from estream.spec.check_rules import check_rules
from estream.spec.check_streams import check_clashes, check_streams, check_tables
from estream.spec.check_unused import check_unused
from estream.spec.checked import Checked, CheckedEvent, CheckedQuery
from estream.spec.event_expression import names
from estream.spec.findings import Findings
from estream.spec.model import Ceq
from estream.spec.reader import Read

CHECKS: Final[tuple[Callable[[Findings], None], ...]] = (
    check_clashes,
    check_streams,
    check_tables,
    check_queries,
    check_events,
    check_rules,
    check_unused,
)
"""In the order of what needs what: a check relies on all that came before it."""


def check(read: Read) -> tuple[Checked, list[Problem]]:
    """The right parts of a file, and what is wrong with the others, in the order of their places.

    A part that is broken, here or when it was read, silences what depends on it.
    """
    findings = Findings(read.ceq or Ceq(), set(read.broken))
    for look in CHECKS:
        look(findings)
    return _sound(findings), sorted(dict.fromkeys(findings.problems), key=lambda problem: problem.place)


def _sound(findings: Findings) -> Checked:
    """The parts that are right and read right ones only."""
    tables = set(map(str, findings.ceq.tables))
    queries: dict[str, CheckedQuery] = {}
    for name, query in findings.queries.items():
        if all(read in queries or read in tables for read in query.reads):
            queries[name] = query
    events: dict[str, CheckedEvent] = {}
    for name, event in findings.events.items():
        needed = names(event.when) if event.when is not None else ()
        if (event.query is None or event.query in queries) and all(other in events for other in needed):
            events[name] = event
    rules = {name: rule for name, rule in findings.rules.items() if str(rule.spec.on) in events}
    return Checked(findings.ceq, queries, events, rules)
