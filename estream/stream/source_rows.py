"""What sources with row numbers as offsets share: limits, tasks, the pace of a live run, and the wanted columns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from estream.errors import EStreamError
from estream.stream.channel_schema import conform
from estream.suggest import suggestion


@dataclass(frozen=True)
class RowRange(InputPartition):
    """The rows of one task: from `start` on, before `end`."""

    start: int
    end: int


def split(start: int, end: int, most: int) -> list[InputPartition]:
    """The rows in ranges of at most so many."""
    return [RowRange(first, min(first + most, end)) for first in range(start, end, most)]


def default_limit(max_rows: int | None) -> ReadLimit:
    """The limit of a micro-batch: so many rows, or all there are."""
    return ReadAllAvailable() if max_rows is None else ReadMaxRows(max_rows)


def read_up_to(start: int, end: int, limit: ReadLimit) -> int:
    """Where a micro-batch ends; never before its start."""
    if isinstance(limit, ReadMaxRows):
        end = min(end, start + limit.max_rows)
    return max(start, end)


class Pace:
    """How much of a source is due in a live run: it begins where the run began and goes on with the clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: tuple[int, float] | None = None

    def since(self, row: int) -> tuple[int, float]:
        """The row at which the run began, and the seconds since then."""
        if self._began is None:
            self._began = (row, self._clock())
        first, moment = self._began
        return first, self._clock() - moment


def wanted_columns(rows: pa.Table, wanted: pa.Schema, subject: str) -> pa.RecordBatch:
    """The rows as one batch with the columns that Spark asked for, in their types."""
    require_columns(rows.schema.names, wanted.names, subject)
    made = conform(rows.select(wanted.names), wanted, subject).combine_chunks()
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in made.columns], schema=wanted)


def require_columns(there: list[str], wanted: list[str], subject: str) -> None:
    """Refuse a schema with a column that the source does not have."""
    for name in wanted:
        if name not in there:
            raise EStreamError(f"{subject} has no column '{name}'; {suggestion(name, there)}")
