"""How tests run stream operators: from a CEQ file's queries, cut into batches, out of order, saved and loaded."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from estream.event.identity import row_ids
from estream.event.operator import Operator, begin, compile_operator, step_each
from estream.event.operator_segments import load, save
from estream.plan.build import build
from estream.plan.stream_operator import StreamOperator
from estream.spec.check import check
from estream.spec.reader import Read, parse_ceq
from tests.reference.operators_stream import Row

SCHEMA = {"ts": "timestamp", "k": "string", "g": "int", "x": "double", "n": "bigint", "s": "string"}


def planned(queries: Mapping[str, Mapping[str, Any]], schema: Mapping[str, str] = SCHEMA) -> dict[str, StreamOperator]:
    """The operators of queries over a stream `S`, as the plan has them."""
    stream = {"source": {"format": "memory"}, "schema": dict(schema), "time": "ts"}
    parsed = parse_ceq(json.dumps({"streams": {"S": stream}, "queries": queries}), "<test>", {})
    checked, problems = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    plan, more = build(checked, [])
    errors = [str(one) for one in (*parsed.problems, *problems, *more) if one.severity == "error"]
    assert errors == []
    return {query.name: query.operator for query in plan.queries if query.operator is not None}


@dataclass(frozen=True)
class Cuts:
    """How the input comes: in `count` batches, shuffled as far as the watermark allows, saved and loaded between."""

    count: int = 1
    seed: int | None = None
    reload: bool = False


def table_of(operator: Operator, rows: Sequence[Row]) -> pa.Table:
    """Rows as a batch for the operator."""
    return pa.table([[row[name] for row in rows] for name in operator.source.names], schema=operator.source)


def rows_of(table: pa.Table) -> list[Row]:
    """A batch as rows, with times in microseconds."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.int64()))
    return table.to_pylist()


def in_order(operator: Operator, rows: Sequence[Row]) -> list[Row]:
    """The rows by time, and those of one time by their hash."""
    table = table_of(operator, rows)
    keyed = zip(rows, row_ids(table, table.column_names), strict=True)
    return [row for row, _ in sorted(keyed, key=lambda pair: (pair[0]["ts"], pair[1]))]


def run(operator: Operator, rows: Sequence[Row], cuts: Cuts = Cuts()) -> list[Row]:
    """Everything one query gives for a bounded input."""
    return next(iter(run_each(operator, rows, cuts).values()))


def run_each(operator: Operator, rows: Sequence[Row], cuts: Cuts = Cuts()) -> dict[str, list[Row]]:
    """Everything each query of a shared operator gives."""
    chance, left = random.Random(cuts.seed), list(rows)
    if cuts.seed is not None:
        span = max((row["ts"] for row in left), default=0) - min((row["ts"] for row in left), default=0)
        left.sort(key=lambda row: row["ts"] + chance.random() * span / 4)
    places = sorted(chance.randrange(len(left) + 1) for _ in range(cuts.count - 1))
    state, segments = begin(operator), dict[str, bytes]()
    given: dict[str, list[Row]] = {query.name: [] for query in operator.queries}
    for start, end in zip((0, *places), (*places, len(left)), strict=True):
        rest = [row["ts"] for row in left[end:]]
        tables = step_each(operator, state, table_of(operator, left[start:end]), min(rest, default=0), not rest)
        for name, table in tables.items():
            given[name] += rows_of(table)
        if cuts.reload:
            segments = save(operator, state).onto(segments)
            state = load(operator, segments)
    assert state.buffer.counts["late"] == 0
    return given


def compiled(query: Mapping[str, Any], schema: Mapping[str, str] = SCHEMA) -> Operator:
    """The operator of one query over the stream `S`."""
    return compile_operator(planned({"Q": {"from": "S", **query}}, schema)["Q"])


def sample(count: int, seed: int, keys: int = 4, span: int | None = None) -> list[Row]:
    """Rows with ties, nulls and repeated values, in no order."""
    chance = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.1 else value

    return [
        {
            "ts": chance.randrange(span or count),
            "k": maybe(f"k{chance.randrange(keys)}"),
            "g": maybe(chance.randrange(3)),
            "x": maybe(chance.choice([0.0, 0.1, -2.5, 1e6, chance.random()])),
            "n": maybe(chance.randrange(-3, 4)),
            "s": maybe(chance.choice("abcdé")),
        }
        for _ in range(count)
    ]
