"""The host stages of a plan without Spark: rows are packed, sharded, stepped in two stages and kept in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from estream.plan.model import Plan
from estream.stream.generator import split
from estream.stream.host import Hosted, Inbox, run_batch
from estream.stream.host_state import Slot, fetch, keep
from estream.stream.layout import STAGES, routes
from estream.stream.occurrence import occurrences
from estream.stream.pack import Packed, to_bytes, to_table
from estream.stream.shard import spark_keys
from estream.stream.watermark import Timing
from estream.testing import Row


class MemoryChunks:
    """Chunks in memory, in the place of Spark's map state."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.written: list[str] = []

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        found = self.values.get(key[0])
        return None if found is None else (found,)

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:
        self.values[key[0]] = value[0]
        self.written.append(key[0])

    def removeKey(self, key: tuple[str]) -> None:
        del self.values[key[0]]

    def iterator(self) -> Iterator[tuple[tuple[str], tuple[bytes]]]:
        return (((name,), (value,)) for name, value in list(self.values.items()))


class Sharded:
    """Shards of a plan. A new one with the chunks of another goes on as after a restart."""

    def __init__(self, plan: Plan, shards: int, run: str, chunks: dict[tuple[int, int], MemoryChunks]) -> None:
        laid = routes(plan)
        timings = {stream.name: Timing(stream.watermark, None) for stream in plan.streams}
        self.plan, self.shards, self.chunks = plan, shards, chunks
        self.stages = [
            Hosted(
                run,
                stage,
                tuple(route for route in laid if route.stage == stage),
                tuple(route for route in laid if route.stage == stage + 1),
                (),
                timings,
                shards,
                False,
            )
            for stage in STAGES
        ]

    def take(self, rows: Sequence[Row], marks: Sequence[Packed], end: int | None = None) -> list[pa.Table]:
        """The detections of one micro-batch."""
        packed = [*self._packed(rows), *marks]
        for hosted in self.stages:
            packed = [each for key in spark_keys(self.shards) for each in self._run(hosted, key, packed, end)]
        return [to_table(each.payload) for each in packed if each.kind == "detections"]

    def _run(self, hosted: Hosted, key: int, packed: list[Packed], end: int | None) -> list[Packed]:
        chunks = self.chunks.setdefault((hosted.stage, key), MemoryChunks())
        slot, programs = Slot(hosted.run, hosted.stage, key), hosted.programs()
        inbox = Inbox.of((each for each in packed if each.shard == key), hosted.stage)
        held = fetch(slot, chunks, programs, inbox.since)
        out = run_batch(hosted, held, inbox, None, key, end)
        keep(slot, chunks, held, programs)
        return out

    def _packed(self, rows: Sequence[Row]) -> Iterator[Packed]:
        keys = spark_keys(self.shards)
        for route in {route.label: route for hosted in self.stages for route in hosted.routes}.values():
            graph = route.graph()
            for leaf in route.leaves:
                own = [row for row in rows if row.event == leaf.name]
                if leaf.name in route.keys and own:
                    columns = {column.name: _column(own, column.name) for column in leaf.columns}
                    table = occurrences(graph, leaf, columns)
                    for shard, part in split(route, leaf, table, columns, self.shards):
                        yield Packed(keys[shard], "rows", route.label, to_bytes(part))


def _column(rows: Sequence[Row], name: str) -> pa.Array:
    if name == "ts":
        return pa.array([row.time for row in rows], pa.timestamp("us", "UTC"))
    if name == "row_id":
        return pa.array([row.id for row in rows], pa.int64())
    return pa.array([row.attributes.get(name) for row in rows], pa.int64())
