"""A few made-up rows through everything that a plan compiles, before Spark's workers need it.

The detection kernel takes numba some twenty seconds once per machine, and each mask, pattern and operator a moment.
In the workers that would be a run that gives nothing for a minute. Here it happens while Spark starts, and the workers
find the machine code on disk. Whatever does not compile is told now.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from estream.event.rows import arrow_type
from estream.plan.model import Leaf, Plan
from estream.spec.checked import Checked
from estream.spec.types import DataType
from estream.stream.emission import Emission, Fed
from estream.stream.feed import Feed, computed, feeds
from estream.stream.generator import Generator
from estream.stream.host import Hosted, Inbox, run_batch
from estream.stream.host_state import Slot, fetch, forget, keep
from estream.stream.layout import STAGES, Route, routes
from estream.stream.pack import Packed, from_columns
from estream.stream.shard import spark_keys
from estream.stream.watermark import Progress

ROWS, SHARDS, END = 3, 2, 1_000_000
_MASK = "__mask"


@contextmanager
def rehearsed(plan: Plan, checked: Checked) -> Iterator[None]:
    """Rehearse beside what is done inside, and wait for it at the end."""
    failed: list[Exception] = []

    def work() -> None:
        try:
            rehearse(plan, checked)
        except Exception as error:
            failed.append(error)

    worker = threading.Thread(target=work, name="rehearsal", daemon=True)
    worker.start()
    yield
    worker.join()
    if failed:
        raise failed[0]


def rehearse(plan: Plan, checked: Checked) -> None:
    """Take made-up rows through generators, hosts, and their state as bytes."""
    given = feeds(plan, checked)
    ours = computed(given)
    laid = routes(plan, ours)
    packed = [row for leaf in plan.leaves if not leaf.matched for row in _raised(leaf, laid, leaf.query in ours)]
    packed += [row for feed in given for row in _fed(feed, laid)]
    run = uuid.uuid4().hex
    for stage in STAGES:
        own, following = (tuple(route for route in laid if route.stage == number) for number in (stage, stage + 1))
        hosted = Hosted(run, stage, own, following, given if stage == 0 else (), {}, SHARDS, False)
        if hosted.is_needed:
            packed = [row for shard in spark_keys(SHARDS) for row in _hosted(hosted, shard, packed)]
    forget("")


def _hosted(hosted: Hosted, shard: int, packed: Sequence[Packed]) -> list[Packed]:
    """What a shard gives of the rows that are for it: in one micro-batch, and in one more after a restart."""
    programs, chunks = hosted.programs(), _Chunks()
    out: list[Packed] = []
    for number, (rows, end) in enumerate(((packed, None), ([], END))):
        held = fetch(Slot(f"{hosted.run} {number}", hosted.stage, shard), chunks, programs)
        inbox = Inbox.of((row for row in rows if row.shard == shard), hosted.stage)
        inbox.reached = asdict(Progress(first=1, watermark=END))
        out += run_batch(hosted, held, inbox, None, shard, end)
        keep(Slot(f"{hosted.run} {number}", hosted.stage, shard), chunks, held, programs)
    return out


def _raised(leaf: Leaf, laid: tuple[Route, ...], is_computed: bool) -> Iterator[Packed]:
    """Occurrences of an event; those of computed queries come from their feeds."""
    if not is_computed:
        columns = {column.name: column.type for column in leaf.columns}
        batch = _made_up(columns | ({leaf.time: DataType("timestamp")} if leaf.raised else {}), leaf.time)
        emission = Emission(leaf, _MASK, {name: name for name in batch.schema.names if name != _MASK})
        yield from _packed(Generator(None, (emission,), (), laid, SHARDS), batch)


def _fed(feed: Feed, laid: tuple[Route, ...]) -> Iterator[Packed]:
    first = next(operator for operator in feed.operators if operator.source == feed.source)
    batch = _made_up(dict(first.source_columns), feed.time)
    fed = Fed(feed, _MASK, {name: name for name in feed.columns})
    yield from _packed(Generator(None, (), (fed,), laid, SHARDS), batch)


def _packed(generator: Generator, batch: pa.RecordBatch) -> Iterator[Packed]:
    for made in generator(iter([batch])):
        yield from (row for row in from_columns(made.to_pydict()) if row.kind in ("rows", "feed"))


def _made_up(columns: dict[str, DataType], time: str) -> pa.RecordBatch:
    """Rows that differ in their times only, and a mask that holds."""
    arrays = {name: _values(arrow_type(kind), name == time) for name, kind in columns.items()}
    return pa.record_batch(arrays | {_MASK: pa.array([True] * ROWS)})


def _values(kind: pa.DataType, is_time: bool) -> pa.Array:
    value: Any = 1
    if is_time:
        return pa.array(range(1, ROWS + 1), kind)
    if pa.types.is_null(kind):
        return pa.nulls(ROWS)
    if pa.types.is_list(kind):
        value = []
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        value = "a"
    elif pa.types.is_boolean(kind):
        value = True
    return pa.array([value] * ROWS, kind)


@dataclass(slots=True)
class _Chunks:
    """The map state of Spark, in memory."""

    values: dict[tuple[str], tuple[bytes]] = field(default_factory=dict)

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        return self.values.get(key)

    def updateValue(self, key: tuple[str], value: tuple[bytes]) -> None:
        self.values[key] = value

    def removeKey(self, key: tuple[str]) -> None:
        self.values.pop(key, None)

    def iterator(self) -> Iterator[tuple[tuple[str], tuple[bytes]]]:
        return iter(list(self.values.items()))
