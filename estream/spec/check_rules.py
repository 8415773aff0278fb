"""Checks of rules: the event, the condition, the names in the texts of actions, callbacks, raised events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from estream.spec.check_events import ticks_of
from estream.spec.checked import CheckedEvent, CheckedRule, Columns
from estream.spec.findings import Findings
from estream.spec.model import (
    Action,
    EmailAction,
    FileAction,
    LogAction,
    PythonAction,
    PythonCondition,
    Raise,
    RaiseAction,
    Rule,
    SqlAction,
    Webhook,
    WebhookAction,
)
from estream.spec.type_check import Scope
from estream.spec.types import DataType, spelling
from estream.suggest import did_you_mean, listed
from estream.text import Text

_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|(?P<lone>[{}])")
_VALUE: Final = re.compile(r"\{(\s*\w+\.\w+\s*)\}")
_URL: Final = re.compile(r"(?i)https?://([^/?#\s]+)\S*")
_HEADER: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_TABLE: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)?")
_CALLBACK: Final = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z_]\w*)")


def check_rules(findings: Findings) -> None:
    """Every rule over the leaves that a detection of its event contains."""
    for name, rule in findings.ceq.rules.items():
        before = findings.errors()
        checked = _check_rule(findings, name, rule)
        if findings.errors() == before and rule.on in findings.events:
            findings.rules[name] = checked


def _check_rule(findings: Findings, name: Text, rule: Rule) -> CheckedRule:
    subject = f"rule '{name}'"
    event = _event(findings, rule, subject)
    scope = _scope(findings, event)
    condition = None
    if isinstance(rule.condition, PythonCondition):
        _check_callback(findings, rule.condition.python, f"{subject}: condition")
    else:
        condition = findings.typed(rule.condition, replace(scope, subject=f"{subject}: condition"), boolean=True)
    for action in rule.actions:
        _check_action(findings, action, scope, event, subject)
    if rule.context is not None and event is not None and event.kind != "composite":
        message = f"{subject}: context has no meaning on {event.kind} event '{rule.on}'; leave it out"
        findings.say(rule.on, message, severity="warning")
    return CheckedRule(name, rule, condition)


def _event(findings: Findings, rule: Rule, subject: str) -> CheckedEvent | None:
    findings.used_events.add(rule.on)
    known = list(findings.ceq.events)
    if rule.on not in known and ("events", rule.on) not in findings.broken:
        there = f"events are {listed(known)}" if known else "the file has none"
        findings.say(rule.on, f"{subject}: unknown event '{rule.on}'; {there}", hint=did_you_mean(rule.on, known))
    return findings.events.get(rule.on)


def _scope(findings: Findings, event: CheckedEvent | None) -> Scope:
    """What a rule may name; behind an event that is wrong, anything."""
    if event is None:
        return Scope(None, findings.any_event(), "leaves")
    events = {leaf: findings.columns_of(leaf) for leaf in event.leaves}
    ticks = ticks_of(event.when)
    return Scope(ticks, {**events, event.name: ticks} if ticks else events, "leaves", source=f"event '{event.name}'")


def _check_action(findings: Findings, action: Action, scope: Scope, event: CheckedEvent | None, subject: str) -> None:
    if isinstance(action, PythonAction):
        _check_callback(findings, action.python, f"{subject}: python")
    if isinstance(action, RaiseAction):
        _check_raise(findings, action.raise_, scope, subject)
    if isinstance(action, WebhookAction):
        _check_webhook(findings, action.webhook, subject)
    if isinstance(action, SqlAction) and not _TABLE.fullmatch(action.sql.table):
        table = action.sql.table
        findings.say(table, f"{subject}: table: {table.brief} is no name of a table; write table or schema.table")
    for key, template in _templates(action):
        if event is not None:
            is_json = isinstance(action, WebhookAction) and key == "body" and template.lstrip()[:1] in ("{", "[")
            _check_template(findings, template, scope, f"{subject}: {key}", is_json)


def _check_webhook(findings: Findings, hook: Webhook, subject: str) -> None:
    address = _URL.fullmatch(hook.url)
    if address is None:
        findings.say(
            hook.url, f"{subject}: url: {hook.url.brief} is no address; write it like https://example.org/hook"
        )
    elif "@" in address[1]:
        findings.say(hook.url, f"{subject}: url: the address has a user; give a header 'Authorization' instead")
    elif not _is_host(hook.url):
        findings.say(hook.url, f"{subject}: url: {hook.url.brief} has no right host and port")
    elif _VALUE.search(address[1]):
        message = f"{subject}: url: a value may not choose the host; values go behind it"
        findings.say(hook.url, message, address.start(1))
    for name in hook.headers:
        if not _HEADER.fullmatch(name):
            findings.say(name, f"{subject}: headers: {name.brief} is no name of a header; write it like X-Name")


def _is_host(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _templates(action: Action) -> Iterator[tuple[str, Text]]:
    match action:
        case LogAction():
            yield "log", action.log
        case FileAction():
            yield "path", action.file.path
        case WebhookAction():
            yield "url", action.webhook.url
            yield from (("headers", value) for value in action.webhook.headers.values())
            if action.webhook.body is not None:
                yield "body", action.webhook.body
        case EmailAction():
            yield "subject", action.email.subject
            if action.email.body is not None:
                yield "body", action.email.body
        case SqlAction():
            yield from (("values", value) for value in action.sql.values.values())
        case _:
            return


def _check_template(findings: Findings, template: Text, scope: Scope, subject: str, is_json: bool) -> None:
    """`{Event.attribute}` only; `{{` and `}}` stand for the braces themselves. In JSON other braces are JSON's."""
    told: set[str] = set()
    if is_json or template.hidden:
        for value in _VALUE.finditer(template):
            if value[0] not in told:
                told.add(value[0])
                _check_value(findings, template, scope, subject, value)
        return
    for found in _PLACEHOLDER.finditer(template):
        if found["lone"] and "lone" not in told:
            told.add("lone")
            brace = found["lone"]
            message = f"{subject} has a lone '{brace}'; write {{Event.attribute}}, or {brace * 2} for the sign itself"
            findings.say(template, message, found.start())
        if found[1] is not None and found[0] not in told:
            told.add(found[0])
            _check_value(findings, template, scope, subject, found)


def _check_value(findings: Findings, template: Text, scope: Scope, subject: str, found: re.Match[str]) -> None:
    event, _, attribute = found[1].strip().partition(".")
    columns = scope.events.get(event) if attribute else scope.columns
    known = listed(scope.events)
    if (not attribute and spelling(event, scope.columns or ()) is None) or not event:
        message = f"{subject} has '{found[0]}'; write {{Event.attribute}}, events are {known}"
        findings.say(template, message, found.start())
    elif attribute and event not in scope.events:
        message = f"{subject} has '{found[0]}'; a detection has the events {known}"
        findings.say(template, message, found.start(), did_you_mean(event, scope.events))
    elif attribute and columns is not None and spelling(attribute, columns) is None:
        message = f"{subject} has '{found[0]}'; event '{event}' has {listed(columns) or 'no attributes'}"
        findings.say(template, message, found.start(), did_you_mean(attribute, columns))


def _check_callback(findings: Findings, text: Text, subject: str) -> None:
    folder = findings.ceq.settings.paths.rules.removesuffix("/").rpartition("/")[2]
    shape = _CALLBACK.fullmatch(text)
    if shape is None:
        findings.say(text, f"{subject}: {text!r} is no callback; write module:function, as {folder}.traffic:notify")
    elif not shape[1].startswith(f"{folder}."):
        way = f"write {folder}.{shape[1]}:{shape[2]}"
        findings.say(text, f"{subject}: {text!r} is not under '{folder}', where callbacks come from; {way}")


def _check_raise(findings: Findings, action: Raise, scope: Scope, subject: str) -> None:
    raised = [name for name, event in findings.events.items() if event.kind == "raised"]
    findings.used_events.add(action.event)
    columns: Columns | None = None
    if ("events", action.event) in findings.broken:
        pass
    elif action.event not in findings.events:
        there = f"raised events are {listed(raised)}" if raised else "define it as an event with 'raised:'"
        hint = did_you_mean(action.event, raised)
        findings.say(action.event, f"{subject}: raise names unknown event '{action.event}'; {there}", hint=hint)
    elif action.event not in raised:
        kind = findings.events[action.event].kind
        message = f"{subject}: raise names {kind} event '{action.event}'; only an event with 'raised:' can be raised"
        findings.say(action.event, message)
    else:
        columns = findings.events[action.event].columns
    _check_attributes(findings, action, columns, scope, subject)


def _check_attributes(findings: Findings, action: Raise, columns: Columns | None, scope: Scope, subject: str) -> None:
    for name, text in action.attributes.items():
        typed = findings.typed(text, replace(scope, subject=f"{subject}: attribute '{name}'"))
        if columns is None:
            continue
        wanted = columns.get(name)
        if wanted is None:
            there = listed(columns) or "no attributes"
            message = f"{subject}: raise gives '{name}'; event '{action.event}' has {there}"
            findings.say(name, message, hint=did_you_mean(name, columns))
        elif typed is not None and not _fits(typed.type, wanted):
            message = f"{subject}: attribute '{name}' is {typed.type}; event '{action.event}' wants {wanted}"
            findings.say(text, message)
    missing = [name for name in columns or () if name not in action.attributes]
    if missing:
        findings.say(action.event, f"{subject}: raise lacks {listed(missing)} of event '{action.event}'")


def _fits(found: DataType, wanted: DataType) -> bool:
    if not found.is_known or found.name == "void" or (found.is_number and wanted.is_number):
        return True
    return found.name == wanted.name
