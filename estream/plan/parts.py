"""Streams, queries and rules of the plan: what the hosts and `explain` need of them, with nothing secret."""

from __future__ import annotations

from estream.plan.model import Column, Query, Rule, Stream
from estream.spec import model
from estream.spec.checked import Checked, CheckedQuery, CheckedRule
from estream.text import Text


def streams(checked: Checked) -> tuple[Stream, ...]:
    """The sources of rows, in the order of definition."""
    return tuple(_stream(checked, q, q.spec) for q in checked.queries.values() if isinstance(q.spec, model.Stream))


def _stream(checked: Checked, query: CheckedQuery, spec: model.Stream) -> Stream:
    source = spec.source
    settings = checked.ceq.settings
    return Stream(
        query.name,
        source.format.shown if source.format else f"channel {source.channel}",
        _columns(query),
        str(spec.time),
        (spec.watermark or settings.stream.watermark).microseconds,
        (spec.idle_after or settings.stream.idle_after).microseconds,
    )


def queries(checked: Checked) -> tuple[Query, ...]:
    """The continuous queries, each after those it reads."""
    return tuple(_query(q, q.spec) for q in checked.queries.values() if isinstance(q.spec, model.Query))


def _query(query: CheckedQuery, spec: model.Query) -> Query:
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
    )


def _query_text(spec: model.Query) -> str:
    """The query in one line, as written."""
    if spec.sql or spec.cel:
        return " ".join((spec.sql or spec.cel or Text("")).shown.split())
    words = [f"from {spec.from_.shown}" if spec.from_ else ""]
    if spec.modify:
        words.append(f"{spec.modify.function}({', '.join(each.shown for each in spec.modify.attributes)})")
    if spec.window:
        words.append(f"window {spec.window.time.shown if spec.window.time else f'{spec.window.rows} rows'}")
    for word, columns in (("unique", spec.unique), ("first unique", spec.first_unique)):
        words += [f"{word} {', '.join(each.shown for each in columns)}"] if columns else []
    words += [f"{name} = {text.shown}" for name, text in spec.select.items()]
    words += [f"where {spec.where.shown}"] if spec.where else []
    words += [f"having {spec.having.shown}"] if spec.having else []
    return ", ".join(filter(None, words))


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
