"""State as named segments of bytes, each node's under its signature; a save gives those that changed.

| segment | what |
|---|---|
| `meta` | watermark, counts, the names of all segments, the nodes |
| `texts/N` | the dictionary of texts, by code |
| `rows/N` | rows that something refers to, each with a serial number that it keeps |
| `waiting/N` | rows above the watermark |
| `node/SIGNATURE/N` | what waits at a node in a range of partitions |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from estream.event.graph import Graph
from estream.event.segment_read import Reading, Report
from estream.event.segment_write import Writing
from estream.event.state import State, begin


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save gives: the segments that changed since the state was begun, loaded or saved before."""

    segments: Mapping[str, bytes]
    removed: frozenset[str]
    """Names of segments that are no longer part of the state."""

    def onto(self, before: Mapping[str, bytes]) -> dict[str, bytes]:
        """All segments, from those there were before."""
        return {**{name: data for name, data in before.items() if name not in self.removed}, **self.segments}


def save(graph: Graph, state: State) -> Saved:
    """Write what changed. The caller keeps it; the next save goes on from here."""
    writing = Writing(graph, state)
    writing.all()
    return Saved(writing.changed, frozenset(writing.removed))


def load(graph: Graph, segments: Mapping[str, bytes]) -> tuple[State, Report]:
    """The state that the segments hold, for this graph, which may be another than the one that wrote them.

    Nodes that are in both go on with all that waits at them. What waited at others is dropped, and reported. With no
    segments at all it is the state of a graph that has seen nothing.
    """
    if not segments:
        return begin(graph), Report((), (), tuple(node.text for node in graph.nodes))
    return Reading(graph, segments).all()
