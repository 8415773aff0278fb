"""Future queries: queries with `start` or `stop`, which see rows from the one time on and before the other.

Their times are resolved here, and what EStream computes itself gets its span as a condition, so that every host sees
the same rows whenever the query is launched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from estream.duration import parse_duration
from estream.spec import model
from estream.spec.check_times import microseconds
from estream.spec.checked import Checked, CheckedQuery
from estream.spec.expression import Expression, Operation, operands_of
from estream.spec.expression_parser import parse_expression
from estream.spec.type_check import Scope, check_types
from estream.spec.types import BOOLEAN
from estream.text import Text

_RELATIVE = "in "
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Span:
    """The rows that a query sees: `start` <= time < `stop`, in microseconds; None is no bound."""

    start: int | None = None
    stop: int | None = None


def future_queries(checked: Checked) -> dict[str, model.Query]:
    """The queries with a start or a stop, by name."""
    return {
        str(name): query.spec
        for name, query in checked.queries.items()
        if isinstance(query.spec, model.Query) and (query.spec.start is not None or query.spec.stop is not None)
    }


def is_relative(text: Text) -> bool:
    """Whether a time counts from when the query is launched."""
    return text.startswith(_RELATIVE)


def span_of(query: model.Query, launched: int) -> Span:
    """The span of a query that was launched at this time."""
    return Span(_moment(query.start, launched), _moment(query.stop, launched))


def _moment(text: Text | None, launched: int) -> int | None:
    if text is None:
        return None
    if is_relative(text):
        return launched + parse_duration(text.removeprefix(_RELATIVE))
    return microseconds(text)


def launched(checked: Checked, spans: Mapping[str, Span]) -> Checked:
    """The file with these spans instead of what is written; queries of EStream's own read a query of their rows.

    What is not there keeps what is written.
    """
    queries: dict[str, CheckedQuery] = {}
    for name, query in checked.queries.items():
        span = spans.get(str(name))
        if span is None or not isinstance(query.spec, model.Query):
            queries[name] = query
        elif query.kind == "sql":
            queries[name] = replace(query, spec=query.spec.model_copy(update=_written(span)))
        elif query.kind == "where":
            condition = _condition(queries[query.reads[0]], span)
            queries[name] = replace(query, spec=_timeless(query.spec), where=_both(query.where, condition))
        else:
            seen = _seen(query, queries[query.reads[0]], span)
            queries[seen.name] = seen
            spec = _timeless(query.spec).model_copy(update={"from_": Text(seen.name)})
            queries[name] = replace(query, spec=spec, reads=(seen.name,))
    return replace(checked, queries=queries)


def seen_name(query: CheckedQuery) -> str:
    """The query that gives the rows in the span: itself, or what one of EStream's own operators then reads."""
    return query.name if query.kind in ("sql", "where") else f"{query.name}__seen"


def _written(span: Span) -> dict[str, Text | None]:
    return {
        "start": None if span.start is None else Text(_iso(span.start)),
        "stop": None if span.stop is None else Text(_iso(span.stop)),
    }


def _timeless(query: model.Query) -> model.Query:
    return query.model_copy(update={"start": None, "stop": None})


def _seen(query: CheckedQuery, source: CheckedQuery, span: Span) -> CheckedQuery:
    """The rows of the source that a query sees, as a query of its own."""
    spec = model.Query.model_construct(from_=Text(source.name), where=Text("true"))
    return CheckedQuery(
        name=seen_name(query),
        kind="where",
        spec=spec,
        reads=(source.name,),
        columns=source.columns,
        time=source.time,
        stateful=False,
        default_id=source.default_id,
        where=_condition(source, span),
    )


def _condition(source: CheckedQuery, span: Span) -> Expression | None:
    """Whether a row of the source is in the span."""
    bounds = ((">=", span.start), ("<", span.stop))
    asked = [f"`{source.time}` {sign} TIMESTAMP '{_iso(bound)}'" for sign, bound in bounds if bound is not None]
    if not asked:
        return None
    text = Text(" AND ".join(asked))
    return check_types(parse_expression(text), Scope(source.columns), text)[0]


def _both(first: Expression | None, second: Expression | None) -> Expression | None:
    if first is None or second is None:
        return first or second
    parts = [part for one in (first, second) for part in _parts(one)]
    return Operation("and", tuple(parts), BOOLEAN, first.span)


def _parts(condition: Expression) -> tuple[Expression, ...]:
    is_and = isinstance(condition, Operation) and condition.name == "and"
    return operands_of(condition) if is_and else (condition,)


def _iso(moment: int) -> str:
    return (_EPOCH + timedelta(microseconds=moment)).isoformat().replace("+00:00", "Z")
