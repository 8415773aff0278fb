"""The clock of a live run: a source that gives the time with every micro-batch, and the heartbeats of idle streams.

Its offset holds all it gives, so a micro-batch that is run again sees the same time. Under AvailableNow it is silent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

FORMAT = "estream_clock"


def write_beats(path: Path, beats: Mapping[str, int]) -> None:
    """Tell the clocks up to when each idle stream is taken as complete."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(dict(beats)), encoding="utf-8")
    new.replace(path)


class ClockSource(DataSource):
    """One row per micro-batch: `now` in microseconds, `beats` as JSON; the option `beats` names the file."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> str:
        """What a row has."""
        return "now bigint, beats string"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """The reader of a live run."""
        return ClockReader(self.options.get("beats"))


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are what a row has: a micro-batch that is repeated has the same time."""

    def __init__(self, beats: str | None, clock: Callable[[], int] = lambda: time.time_ns() // 1000) -> None:
        """`clock` gives microseconds since the epoch."""
        self._beats, self._clock = beats, clock
        self._silent = False

    def initialOffset(self) -> dict[str, Any]:
        """Before every tick. Spark asks again when it repeats a first batch, so the answer must not depend on when."""
        return {"now": 0, "beats": "{}"}

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on be silent."""
        self._silent = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The time now, and the heartbeats as they are now."""
        if self._silent:
            return start
        # A clock that was set back must not take time with it.
        return {"now": max(self._clock(), start["now"] + 1), "beats": self._read_beats()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """One task if the clock has moved."""
        return [InputPartition((end["now"], end["beats"]))] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The one row of the batch."""
        now, beats = partition.value
        yield pa.RecordBatch.from_pydict({"now": pa.array([now], pa.int64()), "beats": pa.array([beats], pa.string())})

    def _read_beats(self) -> str:
        try:
            return Path(self._beats).read_text(encoding="utf-8") if self._beats else "{}"
        except OSError:
            return "{}"
