"""Streams, tables, queries and rules of the plan: what the hosts and `explain` need of them, with nothing secret."""

from __future__ import annotations

from collections.abc import Iterable

from estream.hidden import shown_number
from estream.plan.model import Column, Query, Rule, Stream, Table
from estream.plan.stream_operator import stream_operator
from estream.spec import model
from estream.spec.checked import Checked, CheckedQuery, CheckedRule
from estream.text import Text


def streams(checked: Checked) -> tuple[Stream, ...]:
    """The sources of rows, in the order of definition."""
    return tuple(_stream(checked, q, q.spec) for q in checked.queries.values() if isinstance(q.spec, model.Stream))


def _stream(checked: Checked, query: CheckedQuery, spec: model.Stream) -> Stream:
    settings = checked.ceq.settings
    return Stream(
        query.name,
        _format(spec.source),
        _columns(query),
        str(spec.time),
        (spec.watermark or settings.stream.watermark).microseconds,
        (spec.idle_after or settings.stream.idle_after).microseconds,
    )


def tables(checked: Checked) -> tuple[Table, ...]:
    """The static tables, in the order of definition."""
    return tuple(
        Table(str(name), _format(table.source), table.refresh.microseconds if table.refresh else None)
        for name, table in checked.ceq.tables.items()
    )


def _format(source: model.Source) -> str:
    return source.format.shown if source.format else f"channel {source.channel}"


def queries(checked: Checked) -> tuple[Query, ...]:
    """The continuous queries, each after those it reads."""
    return tuple(_query(checked, q, q.spec) for q in checked.queries.values() if isinstance(q.spec, model.Query))


def _query(checked: Checked, query: CheckedQuery, spec: model.Query) -> Query:
    return Query(
        query.name,
        spec.kind,
        query.reads,
        _columns(query),
        query.time,
        query.stateful,
        _query_text(spec),
        spec.start.shown if spec.start else None,
        spec.stop.shown if spec.stop else None,
        str(spec.publish) if spec.publish else None,
        stream_operator(checked, query),
    )


def _query_text(spec: model.Query) -> str:
    """The query in one line, as written."""
    if spec.sql or spec.cel:
        return " ".join((spec.sql or spec.cel or Text("")).shown.split())
    words = [f"from {spec.from_.shown}" if spec.from_ else ""]
    if spec.modify:
        words.append(_modify_text(spec.modify))
    if spec.window:
        length = spec.window.time.shown if spec.window.time else f"{shown_number(spec.window.rows or 0)} rows"
        words.append(f"window of {length}{' in batches' if spec.window.slide == 'batch' else ''}")
    listed = (("unique", spec.unique), ("first unique", spec.first_unique), ("by", spec.partition))
    for word, columns in (*listed, ("grouped by", spec.group_by)):
        words += [f"{word} {_listed(columns)}"] if columns else []
    words += [f"{name} = {text.shown}" for name, text in spec.select.items()]
    words += [f"where {spec.where.shown}"] if spec.where else []
    words += [f"having {spec.having.shown}"] if spec.having else []
    return " · ".join(filter(None, words))


def _modify_text(modify: model.Modify) -> str:
    over = f" over {modify.over.shown}" if modify.over else ""
    pseudo = f" with pseudo {modify.pseudo:g}" if modify.pseudo else ""
    window = f" of windows of {modify.window.shown}" if modify.window else ""
    every = f" every {modify.every.shown}" if modify.every else ""
    until = f" until {modify.until.shown}" if modify.until else ""
    return (
        f"{modify.function}({_listed(modify.attributes)}){over}{pseudo}{window}{every}{until}, {modify.keep} row kept"
    )


def _listed(columns: Iterable[Text]) -> str:
    return ", ".join(each.shown for each in columns)


def rules(checked: Checked) -> tuple[Rule, ...]:
    """The rules, those of higher priority first."""
    made = [_rule(rule) for rule in checked.rules.values()]
    return tuple(sorted(made, key=lambda rule: -rule.priority))


def _rule(rule: CheckedRule) -> Rule:
    spec = rule.spec
    condition = spec.condition
    text = f"python {condition.python.shown}" if isinstance(condition, model.PythonCondition) else None
    return Rule(
        rule.name,
        str(spec.on),
        spec.context,
        rule.condition,
        text or (condition.shown if isinstance(condition, Text) else None),
        tuple(_action_text(action) for action in spec.actions),
        spec.priority,
        spec.coupling,
        spec.enabled,
    )


def _action_text(action: model.Action) -> str:
    match action:
        case model.PythonAction():
            return f"python {action.python.shown}"
        case model.LogAction():
            return f"log {action.log.shown}"
        case model.FileAction():
            return f"file {action.file.path.shown}"
        case model.WebhookAction():
            return f"webhook {action.webhook.url.shown}"
        case model.EmailAction():
            return f"email {', '.join(each.shown for each in action.email.to)}"
        case model.SqlAction():
            return f"sql insert into {action.sql.table.shown}"
        case model.PublishAction():
            return f"publish {action.publish.shown}"
        case model.RaiseAction():
            return f"raise {action.raise_.event.shown}"


def _columns(query: CheckedQuery) -> tuple[Column, ...]:
    return tuple(Column(str(name), kind) for name, kind in query.columns.items())
