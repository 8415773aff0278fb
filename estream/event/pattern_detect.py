"""Patterns in a step of the graph: their rows go out of what was released, their matches come in as occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import one_chunk
from estream.event.graph import Graph
from estream.event.order import Released
from estream.event.pattern import advance, settle
from estream.event.pattern_graph import GraphPattern
from estream.event.pattern_matches import Matches
from estream.event.relayed import found_at
from estream.event.rows import batch_schema
from estream.event.state import State

Words = npt.NDArray[np.int64]


def match_patterns(state: State, released: Released) -> tuple[Released, list[tuple[GraphPattern, Matches]]]:
    """What is released of other events, and the matches that the rows of patterns complete."""
    found, left = [], np.ones(len(released.event), dtype=np.bool_)
    for pattern in state.patterns:
        mine = released.event == pattern.rows
        left &= ~mine
        rows = _chosen(released, mine)
        attributes = {
            name: one_chunk(rows.attributes.column(column))
            for name, column in zip(pattern.matcher.needed, pattern.columns, strict=True)
        }
        matches = advance(pattern.matcher, pattern.partials, rows.time, rows.id, attributes)
        state.counts["null_key"] += matches.null_keys
        settle(pattern.matcher, pattern.partials, state.watermark)
        found.append((pattern, matches))
    return (_chosen(released, left) if state.patterns else released), found


def _chosen(released: Released, chosen: npt.NDArray[np.bool_]) -> Released:
    if chosen.all():
        return released
    return replace(
        released,
        event=released.event[chosen],
        time=released.time[chosen],
        id=released.id[chosen],
        attributes=released.attributes.filter(pa.array(chosen)),
    )


def put_matches(graph: Graph, state: State, found: Sequence[tuple[GraphPattern, Matches]]) -> None:
    """Let the matches be found at their nodes: each is an occurrence of one constituent, which has the output."""
    for pattern, matches in found:
        if len(matches):
            events = np.full(len(matches), pattern.matches, dtype=np.int64)
            first = state.rows.append(events, matches.end, matches.id, _output(graph, pattern, matches))
            found_at(state, pattern.node, matches.start, matches.end, np.arange(len(matches) + 1), first)


def _output(graph: Graph, pattern: GraphPattern, matches: Matches) -> pa.Table:
    """The output in the columns of the graph; null in those of other events."""
    schema = pa.schema(list(batch_schema(graph))[3:])
    given: list[pa.Array | None] = [None] * len(schema)
    leaf = graph.leaves[pattern.matches]
    for name in leaf.needed:
        given[graph.column_of(leaf.name, name)] = matches.output.column(name)
    columns = [
        pa.nulls(len(matches), field.type) if column is None else column.cast(field.type)
        for column, field in zip(given, schema, strict=True)
    ]
    return pa.table(columns, schema=schema)
