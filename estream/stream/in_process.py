"""A plan over bounded input without Spark: the same graph and kernel on Arrow tables, where no query needs SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from estream.errors import EStreamError
from estream.event.detect import step
from estream.event.evaluate import holds
from estream.event.graph import Graph, compile_graph
from estream.event.operator import begin as begin_operator
from estream.event.operator import compile_operator
from estream.event.operator import step as step_operator
from estream.event.rows import arrow_type, batch_schema
from estream.event.state import begin
from estream.event.words import FOREVER
from estream.plan.model import Leaf, Plan
from estream.spec.checked import Checked, CheckedQuery
from estream.stream.input import input_format
from estream.stream.occurrence import microseconds, occurrences
from estream.stream.raised import recorded

STEP = 262_144
"""Rows of a step."""


def detect_in_process(plan: Plan, checked: Checked, inputs: Mapping[str, Path], channels: Path) -> Iterator[pa.Table]:
    """The detections of each step, in order of time; raised events are those that `channels` has."""
    rows = {stream.name: read_rows(checked.queries[stream.name], inputs) for stream in plan.streams}
    graph = compile_graph(plan)
    raised = {leaf.name: recorded(leaf, channels) for leaf in plan.leaves if leaf.raised}
    batch = _occurrences(plan, graph, rows, raised)
    spans = [
        pc.min_max(microseconds(table.column(checked.queries[name].time))).as_py()
        for name, table in rows.items()
        if table.num_rows
    ]
    first = min((span["min"] for span in spans), default=None)
    last = max((span["max"] for span in spans), default=0)
    state = begin(graph)
    times = batch.column("time")
    for begun in range(0, batch.num_rows, STEP):
        following = times[begun + STEP].as_py() if begun + STEP < batch.num_rows else last
        yield step(graph, state, batch.slice(begun, STEP), following, first=first).detections
    yield step(graph, state, batch_schema(graph).empty_table(), last, True, first=first).detections


def read_rows(query: CheckedQuery, inputs: Mapping[str, Path]) -> pa.Table:
    """The rows of the input that stands in for a stream, with the stream's columns; all of them have a time."""
    if query.name not in inputs:
        raise EStreamError(f"stream '{query.name}' has no input; give one: --input {query.name}=PATH")
    path = inputs[query.name]
    if not path.exists():
        raise EStreamError(f"{path}: there is no such file")
    kind = input_format(path)
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in query.columns.items()])
    try:
        table = ds.dataset(path, schema, format=kind).to_table()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise EStreamError(f"{path}: cannot be read as {kind}: {str(error).splitlines()[0]}") from None
    return table.filter(pc.is_valid(table.column(query.time)))


def _occurrences(plan: Plan, graph: Graph, rows: Mapping[str, pa.Table], raised: Mapping[str, pa.Table]) -> pa.Table:
    """All primitive occurrences by time."""
    queried = [leaf for leaf in plan.leaves if not leaf.matched and not leaf.raised]
    known = dict(rows)
    parts = [_of_leaf(graph, leaf, _of_query(plan, leaf.query, leaf.name, known)) for leaf in queried]
    parts += [_of_leaf(graph, leaf, raised[leaf.name]) for leaf in plan.leaves if leaf.raised]
    whole = pa.concat_tables(parts) if parts else batch_schema(graph).empty_table()
    order = np.argsort(whole.column("time").to_numpy(), kind="stable")
    return whole.take(pa.array(order)).combine_chunks()


def _of_leaf(graph: Graph, leaf: Leaf, table: pa.Table) -> pa.Table:
    if leaf.mask is not None:
        table = table.filter(pa.array(holds(leaf.mask, _columns(table), table.num_rows)))
    return occurrences(graph, leaf, {name: table.column(name) for name in table.column_names})


def _of_query(plan: Plan, name: str, event: str, rows: dict[str, pa.Table]) -> pa.Table:
    """The rows of a stream, or of an operator of EStream's own; `rows` are those known, and get what is computed."""
    if name not in rows:
        query = next(query for query in plan.queries if query.name == name)
        if query.operator is None:
            raise EStreamError(
                f"event '{event}' reads '{name}', which needs Spark ({query.kind}); leave out --host process"
            )
        operator = compile_operator(query.operator, arrival=plan.order == "arrival")
        source = _of_query(plan, query.operator.source, event, rows)
        rows[name] = step_operator(operator, begin_operator(operator), source, FOREVER, end_of_input=True)
    return rows[name]


def _columns(table: pa.Table) -> dict[tuple[str | None, str], Any]:
    return {(None, name): table.column(name).combine_chunks() for name in table.column_names}
