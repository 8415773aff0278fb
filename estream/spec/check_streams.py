"""Checks of streams and tables: the types of their columns, the time column, names that clash."""

from __future__ import annotations

from collections.abc import Mapping

from estream.spec.checked import CheckedQuery, Columns
from estream.spec.findings import Findings
from estream.spec.model import Stream
from estream.spec.sql import Relation
from estream.spec.type_text import parse_type
from estream.spec.types import UNKNOWN, DataType, spelling
from estream.suggest import did_you_mean, listed
from estream.text import Text


def check_streams(findings: Findings) -> None:
    """Every stream with its columns; its time column is there and is a timestamp."""
    for name, stream in findings.ceq.streams.items():
        before = findings.errors()
        subject = f"stream '{name}'"
        columns = declared_columns(findings, stream.columns, subject)
        time = _time_column(findings, stream, columns, subject)
        findings.relations[name] = Relation(columns)
        if findings.errors() == before:
            findings.queries[name] = CheckedQuery(name, "stream", stream, (), columns, time, stateful=False)
        else:
            findings.broken.add(("streams", name))


def check_tables(findings: Findings) -> None:
    """Every table; one without a schema has columns that only Spark knows."""
    for name, table in findings.ceq.tables.items():
        columns = None
        if table.columns is not None:
            columns = declared_columns(findings, table.columns, f"table '{name}'")
        findings.relations[name] = Relation(columns, static=True)


def check_clashes(findings: Findings) -> None:
    """SQL reads streams, queries and tables by name without regard to case, so no two may share one."""
    ceq = findings.ceq
    first: dict[str, str] = {}
    sections = (("stream", ceq.streams), ("table", ceq.tables), ("query", ceq.queries))
    for kind, name in [(kind, name) for kind, parts in sections for name in parts]:
        owner = first.setdefault(name.lower(), f"{kind} '{name}'")
        if owner != f"{kind} '{name}'":
            findings.say(name, f"{kind} '{name}' has the name of {owner}; SQL cannot tell them apart, rename one")


def declared_columns(
    findings: Findings, written: Mapping[Text, Text], subject: str, word: str = "column"
) -> dict[str, DataType]:
    """The columns of a schema; a type that is none is told and taken as unknown."""
    columns: dict[str, DataType] = {}
    lower: dict[str, str] = {}
    for name, kind in written.items():
        if (twin := lower.setdefault(name.lower(), str(name))) != name:
            findings.say(name, f"{subject}: {word}s '{twin}' and '{name}' differ in case only; rename one")
        try:
            columns[str(name)] = parse_type(kind)
        except ValueError as error:
            findings.say(kind, f"{subject}: {word} '{name}': {error}")
            columns[str(name)] = UNKNOWN
    return columns


def _time_column(findings: Findings, stream: Stream, columns: Columns, subject: str) -> str | None:
    time = spelling(stream.time, columns)
    if time is None:
        there = listed(columns)
        message = f"{subject}: time names '{stream.time}'; the schema has {there}"
        findings.say(stream.time, message, hint=did_you_mean(stream.time, columns))
    elif columns[time].is_known and columns[time].name != "timestamp":
        findings.say(stream.time, f"{subject}: time column '{time}' is {columns[time]}; it must be timestamp")
    return time
