"""Spans of future queries: resolved when they are launched, and a condition wherever EStream computes the query."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from estream.event.evaluate import holds
from estream.plan.build import build
from estream.spec.check import check
from estream.spec.checked import Checked, CheckedQuery
from estream.spec.future import Span, future_queries, launched, seen_name, span_of
from estream.spec.reader import Read, parse_ceq

CEQ = """\
version: 1
name: later
streams:
  S: {source: {channel: s}, schema: {ts: timestamp, v: int}, time: ts}
queries:
  Sum: {from: S, window: {rows: 3}, select: {ts: window.end, total: sum(v)}, start: in 10 seconds, stop: in 20 seconds}
  Big: {from: S, where: v > 3 AND v < 9, start: "1970-01-01T00:00:10Z"}
  Plain: {sql: SELECT * FROM S, stop: "1970-01-01T00:00:20Z"}
  Always: {from: S, where: v > 1}
events:
  E: {on: Sum}
  B: {on: Big}
  EB: {when: E ; B}
"""
SECOND = 1_000_000
BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


def checked() -> Checked:
    parsed = parse_ceq(CEQ, "later.yaml", {})
    found, problems = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    assert not [problem for problem in problems if problem.severity == "error"]
    return found


def at(seconds: int) -> Checked:
    """The file, launched at this second."""
    found = checked()
    spans = {name: span_of(query, seconds * SECOND) for name, query in future_queries(found).items()}
    return launched(found, spans)


def seen(query: CheckedQuery, value: int = 5) -> list[int]:
    """The seconds of the rows that a query lets through."""
    seconds = range(0, 40)
    times = pa.array([BEGIN + timedelta(seconds=second) for second in seconds], pa.timestamp("us", "UTC"))
    columns = {(None, "ts"): times, (None, "v"): pa.array([value] * 40, pa.int32())}
    assert query.where is not None
    return [second for second, held in zip(seconds, holds(query.where, columns, 40), strict=True) if held]


def test_relative_times_count_from_the_launch_and_others_do_not() -> None:
    query = future_queries(checked())
    assert list(query) == ["Sum", "Big", "Plain"]
    assert span_of(query["Sum"], 5 * SECOND) == Span(15 * SECOND, 25 * SECOND)
    assert span_of(query["Big"], 5 * SECOND) == Span(10 * SECOND, None)


def test_an_operator_reads_the_rows_of_its_span_its_start_included_and_its_stop_not() -> None:
    found = at(5)
    name = seen_name(checked().queries["Sum"])
    assert found.queries["Sum"].reads == (name,)
    assert seen(found.queries[name]) == list(range(15, 25))
    plan, problems = build(found)
    assert problems == []
    assert [query.operator.source for query in plan.queries if query.operator and query.name == "Sum"] == [name]


def test_a_filter_asks_for_its_span_beside_its_own_condition() -> None:
    assert seen(at(0).queries["Big"]) == list(range(10, 40))
    assert seen(at(0).queries["Big"], 9) == []


def test_what_has_no_span_is_left_alone() -> None:
    assert at(0).queries["Always"] == checked().queries["Always"]
    assert at(0).queries["Plain"].spec.stop == "1970-01-01T00:00:20Z"
