"""What the operators of a feed give, as occurrences of the events that read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from estream.event.evaluate import holds
from estream.event.graph import Graph
from estream.plan.model import Leaf
from estream.stream.generator import split
from estream.stream.layout import Route
from estream.stream.occurrence import occurrences
from estream.stream.pack import Packed, to_bytes
from estream.stream.shard import spark_keys


def raised(given: Mapping[str, pa.Table], routes: Mapping[str, tuple[Route, Graph]], shards: int) -> Iterator[Packed]:
    """Packed occurrences of events on computed queries, by route and shard; `given` are rows by query."""
    keys = spark_keys(shards)
    for label, (route, graph) in routes.items():
        for leaf in _reading(route.leaves, given):
            if leaf.name not in route.keys:
                continue
            columns = masked(leaf, given[leaf.query])
            table = occurrences(graph, leaf, columns)
            for shard, part in split(route, leaf, table, columns, shards):
                yield Packed(keys[shard], "rows", label, to_bytes(part), pc.min(part.column("time")).as_py())


def masked(leaf: Leaf, rows: pa.Table) -> dict[str, Any]:
    """The columns of the rows that the mask of an event lets through."""
    if leaf.mask is not None:
        whole: dict[tuple[str | None, str], Any] = {
            (None, name): rows.column(name).combine_chunks() for name in rows.column_names
        }
        rows = rows.filter(pa.array(holds(leaf.mask, whole, rows.num_rows)))
    return {name: rows.column(name) for name in rows.column_names}


def _reading(leaves: Iterable[Leaf], given: Mapping[str, pa.Table]) -> Iterator[Leaf]:
    return (leaf for leaf in leaves if leaf.query in given and given[leaf.query].num_rows)
