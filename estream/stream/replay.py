"""A plan over bounded input, as a batch job: windows are complete and nothing waits for a watermark.

Packed rows come to the host of a shard by their least time. So all rows before the least time of the next ones are
there, which is the watermark, and only few have to be in memory however long the history is.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import groupby

import pyarrow as pa
from pyspark.sql import DataFrame

from estream.plan.model import Plan
from estream.spec.checked import Checked
from estream.stream.branch import branches
from estream.stream.feed import computed, feeds
from estream.stream.generator import Generator
from estream.stream.host import Hosted, Inbox, run_batch
from estream.stream.host_state import Held, begin_held
from estream.stream.layout import STAGES, routes
from estream.stream.pack import FIRST, SCHEMA, Packed, from_columns, to_batch
from estream.stream.sql_branch import Reader
from estream.stream.watermark import Progress

GOING_THROUGH = ("detections", "published", "late", "dead", "alive")
"""What a host only hands on."""

PIECE = 65_536
"""Rows that are packed together."""

STEP = 4 << 20
"""Bytes of packed rows that are stepped together."""


def replay_frame(plan: Plan, checked: Checked, reader: Reader, shards: int) -> DataFrame:
    """The frame of packed rows that detection over the inputs of the reader gives."""
    given = feeds(plan, checked)
    laid = routes(plan, computed(given))
    parts = [
        branch.frame.mapInArrow(Generator(branch.source, branch.emissions, branch.fed, laid, shards, PIECE), SCHEMA)
        for branch in branches(plan, checked, reader, given, refuse_ahead=False)
    ]
    packed = reduce(DataFrame.union, parts)
    run = uuid.uuid4().hex
    for stage in STAGES:
        own, following = (tuple(route for route in laid if route.stage == number) for number in (stage, stage + 1))
        hosted = Hosted(run, stage, own, following, given if stage == 0 else (), {}, shards, False)
        if hosted.is_needed:
            by_shard = packed.repartition(shards, "shard").sortWithinPartitions("shard", "least")
            packed = by_shard.mapInArrow(ReplayHost(hosted), SCHEMA)
    return packed


@dataclass(frozen=True, slots=True)
class ReplayHost:
    """A host stage over bounded input, as it goes to the workers."""

    hosted: Hosted

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What `mapInArrow` asks for: packed rows in, by shard and least time; packed rows out."""
        rows = (row for batch in batches for row in from_columns(batch.to_pydict()))
        for shard, own in groupby(rows, key=lambda row: row.shard):
            yield from map(to_batch, through_time(self.hosted, shard, own))


def through_time(hosted: Hosted, shard: int, packed: Iterable[Packed]) -> Iterator[list[Packed]]:
    """What a shard gives, step by step, of packed rows that come by their least time, marks first."""
    held, inbox, waiting = begin_held(hosted.programs()), Inbox(), 0
    first, last = None, FIRST
    for row in packed:
        if row.kind == "mark":
            facts = json.loads(row.payload)
            if facts["greatest"] is not None:
                first = facts["least"] if first is None else min(first, facts["least"])
                last = max(last, facts["greatest"])
            # The second stage has to know the end of the run too.
            yield [row] if hosted.stage == 0 and hosted.following else []
        elif row.kind in GOING_THROUGH:
            yield [row]
        else:
            if waiting >= STEP:
                yield _step(hosted, held, inbox, shard, Progress(first=first, watermark=row.least))
                inbox, waiting = Inbox(), 0
            inbox.put(row, hosted.stage)
            waiting += len(row.payload)
    yield _step(hosted, held, inbox, shard, Progress(first=first, watermark=last), last)


def _step(
    hosted: Hosted, held: Held, inbox: Inbox, shard: int, progress: Progress, end: int | None = None
) -> list[Packed]:
    inbox.reached = asdict(progress)
    out = run_batch(hosted, held, inbox, None, shard, end)
    return [row for row in out if row.kind not in ("reached", "status")]
