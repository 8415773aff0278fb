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
    from croniter import croniter

    start = (EPOCH + (begin - 1) * MICROSECOND).astimezone(ZoneInfo(timezone))
    for moment in croniter(text, start, ret_type=datetime):
        time = (moment - EPOCH) // MICROSECOND
        if time >= limit:
            return
        if time >= begin:
            yield time


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
