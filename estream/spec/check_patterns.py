"""Checks of pattern events: the regular expression, its predicates, what a match gives."""

from __future__ import annotations

from dataclasses import replace

from estream.errors import EStreamError
from estream.spec.automaton import automaton_of
from estream.spec.checked import CheckedEvent
from estream.spec.compilable import refusals
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, walk
from estream.spec.findings import Findings
from estream.spec.model import PatternEvent
from estream.spec.pattern_expression import with_rows_lifted
from estream.spec.regex import Predicate, Regex, first, is_nullable, parse_pattern, predicates, trailing
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
    define = _expressions(findings, event.define, scope, f"{subject}: '{{}}'", boolean=True)
    output = _expressions(findings, event.output, scope, f"{subject}: output '{{}}'")
    _check_define(findings, event, subject, define)
    _check_output(findings, event, subject, output)
    _check_regex(findings, event, subject, define)
    if event.on not in findings.queries:
        findings.broken.add(("events", name))
    types = {column: expression.type for column, expression in output.items()}
    return CheckedEvent(
        name,
        "pattern",
        event,
        event.on,
        types if len(output) == len(event.output) else None,
        leaves=(name,),
        define=tuple(define.items()),
        output=tuple(output.items()),
    )


def _expressions(
    findings: Findings, texts: dict[Text, Text], scope: Scope, subject: str, boolean: bool = False
) -> dict[str, Expression]:
    """The typed trees of those that are right, by name."""
    found = {}
    for name, text in texts.items():
        typed = findings.typed(text, replace(scope, subject=subject.format(name)), boolean)
        if typed is not None:
            found[str(name)] = typed
    return found


def _check_define(findings: Findings, event: PatternEvent, subject: str, define: dict[str, Expression]) -> None:
    """Predicates are compiled; what they ask of the current row alone need not be."""
    for name, text in event.define.items():
        if name in define:
            kept = with_rows_lifted(define[name], lambda part: Attribute(None, "row", part.type, part.span))
            hint = "of the current row alone, any expression can be asked"
            findings.problems += refusals(kept, text, f"{subject}: '{name}'", "the rows of a match", hint)


def _check_output(findings: Findings, event: PatternEvent, subject: str, output: dict[str, Expression]) -> None:
    for name, text in event.output.items():
        for part in walk(output[name]) if name in output else ():
            if isinstance(part, Aggregate) and part.name in ("min", "max") and part.type.name == "string":
                message = f"{subject}: output '{name}' has {part.name} of text, which a match does not keep"
                findings.say(text, message, part.span[0], "use first, last or collect")


def _check_regex(findings: Findings, event: PatternEvent, subject: str, define: dict[str, Expression]) -> None:
    try:
        regex = parse_pattern(event.pattern)
    except EStreamError as error:
        findings.tell(error, f"{subject}: pattern")
        return
    _check_predicates(findings, event, subject, regex)
    _check_length(findings, event, subject, regex)
    never = _never(define)
    if not automaton_of(regex, never).final:
        names = ", ".join(f"'{predicate.name}'" for predicate in never)
        findings.say(event.pattern, f"{subject}: pattern can match nothing: no row satisfies {names}")
    for name in dict.fromkeys(found.name for found in first(regex)):
        aggregates = [part for part in walk(define[name]) if isinstance(part, Aggregate)] if name in define else []
        if aggregates:
            text = next(text for key, text in event.define.items() if key == name)
            message = f"{subject}: '{name}' can begin a match, where no row is matched yet; it cannot use "
            findings.say(text, f"{message}{aggregates[0].name}(...)", aggregates[0].span[0])


def _never(define: dict[str, Expression]) -> frozenset[Predicate]:
    """Predicates that are constants and hold for no row."""
    constants = {name: bool(one.value) for name, one in define.items() if isinstance(one, Literal)}
    return frozenset(Predicate(name, negated=holds) for name, holds in constants.items())


def _check_length(findings: Findings, event: PatternEvent, subject: str, regex: Regex) -> None:
    """Warn of matches that could have no row, more rows than they are reported with, or any number of rows."""
    if is_nullable(regex):
        message = f"{subject}: pattern can be no row at all; a match has at least one row"
        findings.say(event.pattern, message, severity="warning")
    elif (end := trailing(regex)) is not None:
        message = f"{subject}: pattern ends with a repetition that adds nothing: a match ends at its first possible row"
        findings.say(event.pattern, message, end.span[0], severity="warning")
    if event.within is None and automaton_of(regex).is_unbounded:
        message = f"{subject}: a match may have any number of rows; nothing bounds how long one is waited for"
        findings.say(event.pattern, message, hint="give the event `within`", severity="warning")


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
