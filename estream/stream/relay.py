"""Occurrences on their way to the second stage, by the key of their last constituent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from estream.event.columns import one_chunk
from estream.event.graph import Graph
from estream.stream.layout import RELAY, Route
from estream.stream.pack import Packed, to_bytes
from estream.stream.shard import shards_of, spark_keys

_CONSTITUENT = 3
"""Fields of a constituent before the columns of its graph: event, id, time."""


def relay(detections: pa.Table, route: Route, graph: Graph, shards: int) -> Iterator[Packed]:
    """What a route of the second stage reads of these detections, packed by its shards; `graph` is theirs."""
    if not detections.num_rows:
        return
    events = detections.column("event").cast(pa.string())
    keys = spark_keys(shards)
    for signature, (_, travels_by) in route.relays.items():
        chosen = detections.filter(pc.equal(events, f"{RELAY}{signature}"))
        if not chosen.num_rows:
            continue
        numbers = _shards(chosen, travels_by, graph, shards, route.home(shards))
        for shard in np.unique(numbers).tolist():
            part = chosen.filter(pa.array(numbers == shard))
            least = pc.min(part.column("end")).as_py()
            yield Packed(keys[shard], "relayed", f"{route.label} {signature}", to_bytes(part), least)


def _shards(
    chosen: pa.Table, travels_by: Mapping[str, tuple[str, ...]], graph: Graph, shards: int, home: int
) -> npt.NDArray[np.int64]:
    """The shard of each occurrence; one without a key is at home."""
    numbers = np.full(chosen.num_rows, home, dtype=np.int64)
    lists = one_chunk(chosen.column("constituents"))
    offsets = np.asarray(lists.offsets.to_numpy(), dtype=np.int64)
    names = np.asarray(lists.values.field("event").cast(pa.string()).to_numpy(zero_copy_only=False))
    last = _last_rows(offsets, names, {temporal.name for temporal in graph.temporals})
    for leaf, key in travels_by.items():
        here = np.flatnonzero(names[last] == leaf)
        if len(here) and key:
            members = lists.values.take(pa.array(last[here]))
            columns = [members.field(_CONSTITUENT + graph.column_of(leaf, name)) for name in key]
            numbers[here] = shards_of(pa.table(columns, names=list(key)), key, shards)
    return numbers


def _last_rows(
    offsets: npt.NDArray[np.int64], names: npt.NDArray[np.object_], temporals: set[str]
) -> npt.NDArray[np.int64]:
    """The last constituent of each occurrence that is not temporal."""
    last = offsets[1:] - 1
    for place in np.flatnonzero(np.isin(names[last], list(temporals))) if temporals else ():
        while last[place] > offsets[place] and names[last[place]] in temporals:
            last[place] -= 1
    return last
