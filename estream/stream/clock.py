"""The clock of a live run: a source that gives the time with every micro-batch, and the heartbeats of idle streams.

Its offset holds all it gives, so a micro-batch that is run again sees the same time. Under AvailableNow it is silent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

FORMAT = "estream_pulse"


def write_beats(path: Path, beats: Mapping[str, int]) -> None:
    """Tell the clocks up to when each idle stream is taken as complete."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(dict(beats)), encoding="utf-8")
    new.replace(path)


class Pulse(DataSource):
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
        return _Reader(self.options.get("beats"))


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, beats: str | None) -> None:
        self._beats = beats
        self._silent = False

    def initialOffset(self) -> dict[str, Any]:
        return {"now": 0, "beats": "{}"}

    def prepareForTriggerAvailableNow(self) -> None:
        self._silent = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        if self._silent:
            return start
        # A clock that was set back must not take time with it.
        return {"now": max(time.time_ns() // 1000, start["now"] + 1), "beats": self._read_beats()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition((end["now"], end["beats"]))] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        now, beats = partition.value
        yield pa.RecordBatch.from_pydict({"now": pa.array([now], pa.int64()), "beats": pa.array([beats], pa.string())})

    def _read_beats(self) -> str:
        try:
            return Path(self._beats).read_text(encoding="utf-8") if self._beats else "{}"
        except OSError:
            return "{}"
