"""From a plan to one Spark streaming query: branches, event generator, two host stages."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from functools import reduce

from pyspark.sql import DataFrame

from estream.plan.model import Plan
from estream.spec.checked import Checked
from estream.stream.branch import Branch, branches
from estream.stream.clock import FORMAT
from estream.stream.feed import computed, feeds
from estream.stream.future import derived
from estream.stream.generator import Generator, clock_generator
from estream.stream.host import Host, Hosted
from estream.stream.layout import STAGES, routes, timings_of
from estream.stream.pack import SCHEMA
from estream.stream.source_formats import playback_speeds
from estream.stream.sql_branch import Reader


def detection_frame(plan: Plan, checked: Checked, reader: Reader, shards: int) -> DataFrame:
    """The streaming frame of packed rows that detection gives; the session must be set for it."""
    session = reader.session
    given = feeds(plan, checked)
    made, laid = branches(plan, checked, reader, given, refuse_ahead=True), routes(plan, computed(given))
    parts = [
        branch.frame.mapInArrow(
            Generator(branch.source, branch.emissions, branch.fed, laid, shards, published=branch.published), SCHEMA
        )
        for branch in made
    ]
    clock = session.readStream.format(FORMAT).name("estream_clock").load().select("now")
    packed = reduce(DataFrame.union, [*parts, clock.mapInArrow(clock_generator(shards), SCHEMA)])
    timings = timings_of(plan, playback_speeds(checked), derived(checked))
    is_held = any(branch.is_held for branch in made)
    direct = _direct(made, derived(checked))
    run = uuid.uuid4().hex
    for stage in STAGES:
        own, following = (tuple(route for route in laid if route.stage == number) for number in (stage, stage + 1))
        here = given if stage == 0 else ()
        host = Host(Hosted(run, stage, own, following, here, timings, shards, is_held, direct))
        packed = packed.groupBy("shard").transformWithStateInPandas(
            host, SCHEMA, "Append", "EventTime" if is_held else "None"
        )
    return packed


def _direct(made: Iterable[Branch], behind: Collection[str]) -> frozenset[str]:
    """The events and feeds that read rows of streams as they come, but for streams that lie behind the others."""
    own = [branch for branch in made if branch.source is not None and branch.source not in behind]
    events = {emission.leaf.name for branch in own for emission in branch.emissions}
    return frozenset(events | {fed.feed.label for branch in own for fed in branch.fed})
