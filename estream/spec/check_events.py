"""Checks of events: what they are on, the names in their expressions, their masks, their schedules."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Final

from estream.errors import EStreamError
from estream.spec.check_patterns import check_pattern
from estream.spec.check_streams import declared_columns
from estream.spec.check_times import check_timestamp, check_timezone, cron_problem
from estream.spec.checked import CheckedEvent, Columns
from estream.spec.event_expression import Apply, EventExpression, Name, depth, names, walk
from estream.spec.event_parser import parse_event
from estream.spec.expression import Attribute, Expression
from estream.spec.expression import walk as expressions
from estream.spec.findings import Findings, around, in_order
from estream.spec.model import CompositeEvent, PatternEvent, PrimitiveEvent, RaisedEvent, TemporalEvent
from estream.spec.type_check import Scope
from estream.spec.types import BIGINT, TIMESTAMP, array_of
from estream.suggest import did_you_mean, listed
from estream.text import Text

_DEEPEST: Final = 150


def check_events(findings: Findings) -> None:
    """Every event; composite events after those they name."""
    composite: dict[str, tuple[Text, CompositeEvent]] = {}
    for name, event in findings.ceq.events.items():
        before = findings.errors()
        if isinstance(event, CompositeEvent):
            composite[name] = (name, event)
            continue
        checked = _simple(findings, name, event)
        if findings.errors() == before:
            findings.events[name] = checked
        else:
            findings.broken.add(("events", name))
    _check_composites(findings, composite)


def _simple(
    findings: Findings, name: Text, event: PrimitiveEvent | PatternEvent | TemporalEvent | RaisedEvent
) -> CheckedEvent:
    match event:
        case PrimitiveEvent():
            return _primitive(findings, name, event)
        case PatternEvent():
            return check_pattern(findings, name, event)
        case TemporalEvent():
            return _temporal(findings, name, event)
        case RaisedEvent():
            columns = declared_columns(findings, event.raised, f"event '{name}'", "attribute")
            return CheckedEvent(name, "raised", event, columns=columns, leaves=(name,))


def _primitive(findings: Findings, name: Text, event: PrimitiveEvent) -> CheckedEvent:
    subject, source = f"event '{name}'", f"'{event.on}'"
    columns = findings.relation(event.on, subject, "on").columns
    findings.columns_exist(event.id or (), columns, subject, "id", source)
    scope = Scope(columns, subject=f"{subject}: mask", source=findings.called(event.on))
    mask = findings.typed(event.mask, scope, boolean=True)
    if event.on not in findings.queries:
        findings.broken.add(("events", name))
    return CheckedEvent(name, "primitive", event, query=event.on, columns=columns, mask=mask, leaves=(name,))


def _temporal(findings: Findings, name: Text, event: TemporalEvent) -> CheckedEvent:
    subject = f"event '{name}'"
    check_timestamp(findings, event.at, subject, "at")
    check_timezone(findings, event.timezone, subject)
    if event.cron is not None and (wrong := cron_problem(event.cron)):
        findings.say(event.cron, f"{subject}: cron: {wrong}")
    if event.timezone is not None and event.cron is None:
        findings.say(event.timezone, f"{subject}: timezone belongs to cron; leave it out")
    return CheckedEvent(name, "temporal", event, columns={}, leaves=(name,))


def _check_composites(findings: Findings, composite: Mapping[str, tuple[Text, CompositeEvent]]) -> None:
    trees: dict[str, EventExpression] = {}
    for name, (place, event) in composite.items():
        try:
            trees[name] = parse_event(event.when)
        except EStreamError as error:
            findings.tell(error, f"event '{place}': when")
            findings.broken.add(("events", name))
    order, cycles = in_order({name: names(tree) for name, tree in trees.items()})
    for cycle in cycles:
        place, _ = composite[cycle[0]]
        findings.say(place, f"event '{place}' is defined by itself: {around(cycle, ' needs ')}")
        findings.used_events.update(cycle)
        findings.broken.update(("events", member) for member in cycle)
    depths: dict[str, int] = {}
    for name in order:
        before = findings.errors()
        depths[name] = depth(trees[name], depths)
        checked = _composite(findings, *composite[name], trees[name])
        if depths[name] > _DEEPEST and checked is not None:
            _say_too_deep(findings, *composite[name])
        if findings.errors() == before and checked is not None:
            findings.events[name] = checked
        else:
            findings.broken.add(("events", name))


def _say_too_deep(findings: Findings, name: Text, event: CompositeEvent) -> None:
    message = f"event '{name}': when: nested deeper than {_DEEPEST} operators, with those of the events it names"
    findings.say(event.when, message, 0)


def _composite(findings: Findings, name: Text, event: CompositeEvent, when: EventExpression) -> CheckedEvent | None:
    subject = f"event '{name}'"
    complete = _names_exist(findings, event.when, when, subject)
    mask = findings.typed(event.mask, _scope(findings, when, subject, complete), boolean=True)
    if mask is not None and event.mask is not None:
        _say_ticks(findings, event.mask, mask, when, subject)
    if not complete:
        return None
    contained = dict.fromkeys(leaf for part in _constituents(when) for leaf in leaves_of(findings, part))
    return CheckedEvent(name, "composite", event, mask=mask, when=when, leaves=tuple(contained))


def _scope(findings: Findings, when: EventExpression, subject: str, complete: bool) -> Scope:
    """What a composite event's mask may name; with a wrong part below it, that is any event."""
    events: Mapping[str, Columns | None]
    if complete:
        events = {leaf: findings.columns_of(leaf) for leaf in _leaves_below(findings, when)}
    else:
        events = ChainMap(findings.any_event(), dict.fromkeys(names(when)))
    return Scope(ticks_of(when), events, "leaves", f"{subject}: mask", source=subject)


def _say_ticks(findings: Findings, text: Text, mask: Expression, when: EventExpression, subject: str) -> None:
    """Ticks are of the detection; a mask is about its constituents."""
    ticks = ticks_of(when)
    for part in expressions(mask):
        if isinstance(part, Attribute) and part.event is None and part.name in ticks:
            start, end = part.span
            message = f"{subject}: mask uses '{part.name}' of the detection; a mask is about its constituents"
            hint = f"ask {part.name} in the condition of a rule"
            findings.problems.append(text.problem(message, start, end - start, hint))


def _names_exist(findings: Findings, text: Text, when: EventExpression, subject: str) -> bool:
    complete = True
    told: set[str] = set()
    for part in walk(when):
        if not isinstance(part, Name):
            continue
        findings.used_events.add(part.name)
        if part.name in findings.events:
            continue
        complete = False
        if part.name in told or ("events", part.name) in findings.broken:
            continue
        told.add(part.name)
        known = list(findings.ceq.events)
        message = f"{subject}: unknown event '{part.name}'; events are {listed(known)}"
        findings.say(text, message, part.span[0], did_you_mean(part.name, known))
    return complete


def leaves_of(findings: Findings, name: str) -> tuple[str, ...]:
    """The leaf events behind a name: itself, or those a composite event's occurrences may contain."""
    event = findings.events.get(name)
    return event.leaves if event is not None else ()


def _leaves_below(findings: Findings, when: EventExpression) -> list[str]:
    """Every leaf event that stands in an expression or in those it names: what a mask may name."""
    seen: dict[str, None] = {}
    pending = list(reversed(names(when)))
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen[name] = None
        event = findings.events.get(name)
        pending += reversed(names(event.when) if event is not None and event.when is not None else ())
    return [name for name in seen if name in findings.events and findings.events[name].when is None]


def ticks_of(when: EventExpression | None) -> Columns:
    """`tick` of an event that is itself a P, `ticks` of one that is itself a P*."""
    if isinstance(when, Apply) and when.operator == "P":
        return {"tick": BIGINT}
    return {"ticks": array_of(TIMESTAMP)} if isinstance(when, Apply) and when.operator == "P*" else {}


def _constituents(when: EventExpression) -> Iterator[str]:
    """Names whose occurrences become constituents: not N of `not` and `absent`, not T of `A` and `P`."""
    if isinstance(when, Name):
        yield when.name
        return
    parts = {"not": (0, 2), "absent": (0,), "A": (0, 1), "P": (0,)}.get(when.operator, range(len(when.operands)))
    for part in parts:
        yield from _constituents(when.operands[part])
