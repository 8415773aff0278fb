"""The patterns of a graph: which rows each one matches, and its partial matches."""

from __future__ import annotations

from dataclasses import dataclass

from estream.event.graph import Graph
from estream.event.pattern import Matcher, begin_partials, compile_pattern
from estream.event.pattern_state import Partials
from estream.plan.pattern import rows_event


@dataclass(slots=True)
class GraphPattern:
    """A pattern node of a graph."""

    node: int
    signature: str
    rows: int
    """The event code of the rows it matches."""
    matches: int
    """The event code of its matches."""
    columns: tuple[int, ...]
    """The numbers of the columns it asks for, in the order of `matcher.needed`."""
    matcher: Matcher
    partials: Partials


def begin_patterns(graph: Graph) -> tuple[GraphPattern, ...]:
    """The patterns of a graph that have seen nothing; compiles them, or loads what an earlier process compiled."""
    found = []
    for node in graph.nodes:
        if node.operator == "pattern" and node.pattern is not None:
            name, matcher = node.pattern.name, compile_pattern(node.pattern, arrival=graph.arrival)
            rows = rows_event(name)
            columns = tuple(graph.column_of(rows, column) for column in matcher.needed)
            codes = graph.event_code(rows), graph.event_code(name)
            found.append(GraphPattern(node.number, node.signature, *codes, columns, matcher, begin_partials(matcher)))
    return tuple(found)
