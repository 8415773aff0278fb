"""What sources with row numbers as offsets share: limits, ranges and tasks."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows


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
