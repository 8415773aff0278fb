"""Checks of pattern events: the regular expression, its predicates, what a match gives."""

from __future__ import annotations

from dataclasses import replace

from estream.errors import EStreamError
from estream.spec.checked import CheckedEvent
from estream.spec.expression import Aggregate, Expression, walk
from estream.spec.findings import Findings
from estream.spec.model import PatternEvent
from estream.spec.regex import Regex, first, is_nullable, parse_pattern, predicates, trailing
from estream.spec.type_check import Scope
from estream.suggest import did_you_mean
from estream.text import Text

_ANY = "."


def check_pattern(findings: Findings, name: Text, event: PatternEvent) -> CheckedEvent:
    """The pattern event, typed; a predicate may use aggregates of the rows matched before it."""
    subject = f"event '{name}'"
    columns = findings.relation(event.on, subject, "on").columns
    source = f"'{event.on}'"
    findings.columns_exist(event.partition_by, columns, subject, "partition_by", source)
    findings.columns_exist(event.id or (), columns, subject, "id", source)
    scope = Scope(columns, aggregates="rows", source=findings.called(event.on))
    define: list[tuple[str, Expression]] = []
    for predicate, text in event.define.items():
        typed = findings.typed(text, replace(scope, subject=f"{subject}: '{predicate}'"), boolean=True)
        if typed is not None:
            define.append((str(predicate), typed))
    output: list[tuple[str, Expression]] = []
    for column, text in event.output.items():
        typed = findings.typed(text, replace(scope, subject=f"{subject}: output '{column}'"))
        if typed is not None:
            output.append((str(column), typed))
    _check_regex(findings, event, subject, dict(define))
    if event.on not in findings.queries:
        findings.broken.add(("events", name))
    types = {column: expression.type for column, expression in output} if len(output) == len(event.output) else None
    return CheckedEvent(
        name, "pattern", event, event.on, types, leaves=(name,), define=tuple(define), output=tuple(output)
    )


def _check_regex(findings: Findings, event: PatternEvent, subject: str, define: dict[str, Expression]) -> None:
    try:
        regex = parse_pattern(event.pattern)
    except EStreamError as error:
        findings.tell(error, f"{subject}: pattern")
        return
    _check_predicates(findings, event, subject, regex)
    if is_nullable(regex):
        findings.say(event.pattern, f"{subject}: pattern can match nothing; a match has at least one row")
    elif (end := trailing(regex)) is not None:
        message = f"{subject}: pattern ends with a repetition that adds nothing: a match ends at its first possible row"
        findings.say(event.pattern, message, end.span[0], severity="warning")
    for predicate in dict.fromkeys(found.name for found in first(regex)):
        aggregates = (
            [part for part in walk(define[predicate]) if isinstance(part, Aggregate)] if predicate in define else []
        )
        if aggregates:
            key = next(key for key in event.define if key == predicate)
            message = f"{subject}: '{predicate}' can begin a match, where no row is matched yet; it cannot use "
            text = event.define[key]
            findings.say(text, f"{message}{aggregates[0].name}(...)", aggregates[0].span[0])


def _check_predicates(findings: Findings, event: PatternEvent, subject: str, regex: Regex) -> None:
    used: set[str] = set()
    for predicate in predicates(regex):
        if predicate.name == _ANY or predicate.name in used:
            continue
        used.add(predicate.name)
        if predicate.name not in event.define:
            known = ", ".join(event.define) or "nothing"
            message = f"{subject}: pattern uses '{predicate.name}'; define has {known}"
            findings.say(event.pattern, message, predicate.span[0], did_you_mean(predicate.name, event.define))
    for name in event.define:
        if name not in used:
            findings.say(name, f"{subject}: '{name}' is defined and not used in the pattern", severity="warning")
