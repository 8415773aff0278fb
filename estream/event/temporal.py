"""Occurrences of temporal primitive events (`at`, `every`, `cron`), as rows without attributes and with id 0.

`at` occurs once, `every` and `cron` after the first row.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.graph import Graph
from estream.event.state import State
from estream.plan.model import Temporal

Words = npt.NDArray[np.int64]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)
CALENDAR = (datetime(9900, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND
"""As far as there is cron: the search for the next time must stay within the calendar, which ends with 9999."""


def instants(temporal: Temporal, first: int | None, since: int, limit: int) -> Iterator[int]:
    """When the event occurs at or after `since` and before `limit`; `first` is the time of the first row."""
    if temporal.at is not None:
        if since <= temporal.at < limit:
            yield temporal.at
    elif first is not None and temporal.every is not None:
        begin = max(first + 1, since)
        yield from range(-(-begin // temporal.every) * temporal.every, limit, temporal.every)
    elif first is not None and temporal.cron is not None:
        yield from _cron(temporal.cron, temporal.timezone, max(first + 1, since), limit)


def _cron(text: str, timezone: str, begin: int, limit: int) -> Iterator[int]:
    """The instants of the wall-clock times, which do not depend on where the search for them begins."""
    from croniter import croniter

    limit = min(limit, CALENDAR)
    if begin >= limit:
        return
    zone = ZoneInfo(timezone)
    minute, hour, *_ = text.split()
    follows_clock = minute.startswith("*") or hour.startswith("*")
    since, until = _local(begin - 1, zone), _local(limit, zone)
    found: set[int] = set()
    for wall in croniter(text, since - _slack(since, zone), ret_type=datetime):
        if wall > until + _slack(until, zone):
            break
        found.update(time for time in _moments(wall, zone, follows_clock) if begin <= time < limit)
    yield from sorted(found)


def _local(time: int, zone: ZoneInfo) -> datetime:
    """What a clock on the wall shows."""
    return (EPOCH + time * MICROSECOND).astimezone(zone).replace(tzinfo=None)


def _slack(wall: datetime, zone: ZoneInfo) -> timedelta:
    """How far to look around a wall-clock time: near a change of the clock, farther than the clock ever jumped."""
    around = {zone.utcoffset(wall + days * DAY) for days in (-1, 0, 1)}
    return DAY if len(around) > 1 else timedelta(0)


def _moments(wall: datetime, zone: ZoneInfo, follows_clock: bool) -> Iterator[int]:
    """When the clock shows this, mostly once.

    Where minute or hour is a `*` it is as often as the clock shows it. Else it is once: the first of two times, and
    for a time that the clock skips as much later as it skips.
    """
    first, second = ((wall.replace(tzinfo=zone, fold=fold) - EPOCH) // MICROSECOND for fold in (0, 1))
    if not (follows_clock and second < first):
        yield first
    if follows_clock and second > first:
        yield second


def temporal_rows(graph: Graph, state: State, since: int, limit: int) -> Words:
    """Append the temporal occurrences of the step to the rows; gives their numbers, by (time, event)."""
    found = sorted(
        (time, code)
        for code, temporal in enumerate(graph.temporals, start=len(graph.leaves))
        for time in instants(temporal, state.first, since, limit)
    )
    if not found:
        return np.empty(0, dtype=np.int64)
    times, codes = np.array(found, dtype=np.int64).T
    nothing = pa.table(
        [pa.nulls(len(found), kind) for kind in state.rows.attributes.types], schema=state.rows.attributes
    )
    first = state.rows.append(codes, times, np.zeros(len(found), dtype=np.int64), nothing)
    return np.arange(first, first + len(found))
