"""The Spark data source `estream_clock`: one row for each micro-batch of a live run, with the time by the clock.

It makes deadlines fire on silent streams. In a run over what is there (`--once`) it is silent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from estream.stream.source_options import SourceOptions
from estream.stream.source_rows import RowRange, wanted_columns

FORMAT: Final = "estream_clock"
BEFORE: Final = 0
"""The offset before the first tick."""


class ClockSource(DataSource):
    """Ticks: `ts` is the time of the tick, `previous` that of the one before, null for the first.

    The option `every` is the least time between ticks.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._every = SourceOptions(FORMAT, dict(options), ("every",)).duration("every", "1 s")

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> str:
        """The columns of a tick."""
        return "ts timestamp, previous timestamp"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The ticks as time goes on."""
        return ClockReader(self._every, schema)


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are the times of ticks, in microseconds since the epoch: a batch that is repeated has the same tick."""

    def __init__(
        self, every: int, schema: StructType, clock: Callable[[], int] = lambda: time.time_ns() // 1000
    ) -> None:
        self._every, self._schema, self._clock = every, schema, clock
        self._silent = False

    def initialOffset(self) -> dict[str, int]:
        """Before every tick. Spark asks again when it repeats a first batch, so the answer must not depend on when."""
        return {"micros": BEFORE}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The clock's last tick; a clock that was set back stands still until it has caught up."""
        return start if self._silent else {"micros": max(self._tick(), start["micros"])}

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on be silent."""
        self._silent = True

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One task if there is a tick."""
        return [RowRange(start["micros"], end["micros"])] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The tick of the batch."""
        if not isinstance(partition, RowRange):
            return
        kind = pa.timestamp("us", "UTC")
        previous = None if partition.start == BEFORE else partition.start
        row = {"ts": pa.array([partition.end], kind), "previous": pa.array([previous], kind)}
        yield wanted_columns(pa.table(row), to_arrow_schema(self._schema, timezone="UTC"), f"source '{FORMAT}'")

    def _tick(self) -> int:
        return self._clock() // self._every * self._every
