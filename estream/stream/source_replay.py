"""The Spark data source `replay`: a file with a time column, played back as fast as its times say, or faster.

A record that cannot be read is a dead letter; without a channel for those (the option `dead_letters`) it is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from estream.errors import EStreamError, Place, Problem
from estream.stream.channel_dead_letter import DeadLetter, bury, dead_letters
from estream.stream.source_options import SourceOptions
from estream.stream.source_replay_file import Recording, columns_of, load
from estream.stream.source_rows import Pace, RowRange, default_limit, read_up_to, split, wanted_columns

FORMAT: Final = "replay"
_OPTIONS: Final = ("path", "time", "speed", "max_rows", "partition_rows", "dead_letters", "stream")


@dataclass(frozen=True, slots=True)
class Replay:
    """What is played back, and how."""

    path: str
    time: str
    speed: float
    """How many times faster than the clock."""
    max_rows: int | None
    partition_rows: int
    dead_letters: str
    """The folder of channels in which dead letters are kept."""
    stream: str
    """The name of the stream in dead letters."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Replay:
        """The options as they are written."""
        given = SourceOptions(FORMAT, options, _OPTIONS)
        path = given.text("path")
        return cls(
            path,
            given.text("time"),
            given.speed(),
            given.optional_whole("max_rows", 1),
            given.whole("partition_rows", 500_000, 1),
            given.text("dead_letters", ""),
            given.text("stream", Path(path).name),
        )

    def recording(self, schema: StructType) -> Recording:
        """The file in order of time; records that were refused are buried, once for each state of the file."""
        found = load(self.path, self.time, to_arrow_schema(schema, timezone="UTC"))
        if found.refused and not self.dead_letters:
            raise EStreamError([Problem(Place(self.path, each.line, 1), each.reason) for each in found.refused[:20]])
        letters = [DeadLetter(self.stream, f"{self.path}:{at.line}", at.reason, at.record) for at in found.refused]
        if letters:
            version = Path(self.path).stat().st_mtime_ns
            bury(dead_letters(Path(self.dead_letters)), letters, f"replay {self.stream} {self.path}", version)
        return found


class ReplaySource(DataSource):
    """Plays a CSV, JSON lines or Parquet file."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._play = Replay.of(dict(options))

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the file, if it says them."""
        return from_arrow_schema(columns_of(self._play.path))

    def reader(self, schema: StructType) -> DataSourceReader:
        """The whole file as a table."""
        return _Table(self._play, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The rows when they are due."""
        return ReplayReader(self._play, schema)


class _Table(DataSourceReader):
    def __init__(self, play: Replay, schema: StructType) -> None:
        self._play, self._schema = play, schema

    def partitions(self) -> Sequence[InputPartition]:
        return split(0, self._play.recording(self._schema).rows.num_rows, self._play.partition_rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._play, self._schema, partition)


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are row numbers in order of time."""

    def __init__(self, play: Replay, schema: StructType, pace: Pace | None = None) -> None:
        self._play, self._schema, self._pace = play, schema, pace or Pace()
        rows = play.recording(schema).rows
        self._times = rows[play.time].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
        self._all_there_is = False

    def initialOffset(self) -> dict[str, int]:
        """The first row."""
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """So many rows as the option says."""
        return default_limit(self._play.max_rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The rows whose time has come, counted from the row at which the run began."""
        first, seconds = self._pace.since(start["row"])
        due = len(self._times)
        if not self._all_there_is and first < due:
            moment = self._times[first] + int(seconds * self._play.speed * 1_000_000)
            due = int(np.searchsorted(self._times, moment, "right"))
        return {"row": read_up_to(start["row"], due, limit)}

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on all rows are due."""
        self._all_there_is = True

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Tasks of at most so many rows as the option says."""
        return split(start["row"], end["row"], self._play.partition_rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a task."""
        return _read(self._play, self._schema, partition)


def _read(play: Replay, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(partition, RowRange) and partition.start < partition.end:
        wanted = to_arrow_schema(schema, timezone="UTC")
        rows = load(play.path, play.time, wanted).rows.slice(partition.start, partition.end - partition.start)
        yield wanted_columns(rows, wanted, play.path)
