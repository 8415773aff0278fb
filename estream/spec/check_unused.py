"""Warnings for parts that nothing reads. A file of streams only is meant for others, and gets none."""

from __future__ import annotations

from estream.spec.findings import Findings
from estream.text import Text


def check_unused(findings: Findings) -> None:
    """Streams, tables and queries that no query or event reads; events that no event, rule or channel gets."""
    ceq = findings.ceq
    if findings.errors() or findings.broken:
        return  # What reads the part may be what is wrong.
    if ceq.queries or ceq.events:
        for kind, parts in (("stream", ceq.streams), ("table", ceq.tables)):
            for name in parts:
                _warn(findings, kind, name, name in findings.used, "no query or event reads it")
    if ceq.events:
        for name, query in ceq.queries.items():
            _warn(findings, "query", name, name in findings.used or bool(query.publish), "no query or event reads it")
    if ceq.rules:
        for name, event in ceq.events.items():
            used = name in findings.used_events or bool(event.publish)
            _warn(findings, "event", name, used, "no event or rule needs it")


def _warn(findings: Findings, kind: str, name: Text, used: bool, why: str) -> None:
    if not used:
        findings.say(name, f"{kind} '{name}' is not used: {why}", severity="warning")
