"""The Spark data source `estream_channel`: a channel as a stream or as a table.

Columns are taken by name. A schema may also ask for what the channel knows of each row: `_offset` (bigint),
`_watermark` and `_appended` (timestamp).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from estream.stream.channel import Block, Channel
from estream.stream.channel_schema import conform, constant
from estream.stream.source_options import SourceOptions
from estream.stream.source_rows import RowRange, default_limit, read_up_to, require_columns, split

_OPTIONS: Final = ("path", "from", "reader", "max_rows", "partition_rows", "marks")
METADATA: Final = ("_offset", "_watermark", "_appended")
"""Columns that the channel itself fills."""


@dataclass(frozen=True, slots=True)
class ChannelOptions:
    """How a channel is read."""

    path: str
    start: str
    """`first` row that is kept, or only what comes after the `last` one."""
    reader: str
    """The name under which the channel keeps rows for this reader; empty: it keeps none."""
    max_rows: int | None
    """The most rows of a micro-batch."""
    partition_rows: int
    """The most rows of a task."""
    marks: bool
    """Also give a row without values for each block that only carries a watermark."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ChannelOptions:
        """The options as Spark hands them over."""
        given = SourceOptions(ChannelSource.name(), options, _OPTIONS)
        return cls(
            given.text("path"),
            given.choice("from", ("first", "last")),
            given.text("reader", ""),
            given.optional_whole("max_rows", 1),
            given.whole("partition_rows", 500_000, 1),
            given.flag("marks"),
        )


class ChannelSource(DataSource):
    """Reads a channel by its folder, the option `path`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._read = ChannelOptions.of(dict(options))

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "estream_channel"

    def schema(self) -> StructType:
        """The columns of the channel."""
        return from_arrow_schema(Channel(self._read.path).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """All rows that are there, as a table."""
        return _Table(self._read, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The rows as they come."""
        return _Stream(self._read, schema)


class _Table(DataSourceReader):
    def __init__(self, options: ChannelOptions, schema: StructType) -> None:
        self._options, self._schema = options, schema

    def partitions(self) -> Sequence[InputPartition]:
        channel = Channel(self._options.path)
        return split(channel.first(), channel.latest(), self._options.partition_rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, self._schema, partition)


class _Stream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ChannelOptions, schema: StructType) -> None:
        self._options, self._schema = options, schema
        self._start: int | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        # Spark asks more than once, and must hear the same though rows came in between.
        if self._start is None:
            channel = Channel(self._options.path)
            self._start = channel.first() if self._options.start == "first" else channel.latest()
            self._hold(self._start)
        return {"row": self._start}

    def getDefaultReadLimit(self) -> ReadLimit:
        return default_limit(self._options.max_rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        end = Channel(self._options.path).latest() if self._target is None else self._target
        return {"row": read_up_to(start["row"], end, limit)}

    def reportLatestOffset(self) -> dict[str, int] | None:
        return {"row": Channel(self._options.path).latest()}

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = Channel(self._options.path).latest()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return split(start["row"], end["row"], self._options.partition_rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, self._schema, partition)

    def commit(self, end: dict[str, int]) -> None:
        self._hold(end["row"])

    def _hold(self, offset: int) -> None:
        if self._options.reader:
            Channel(self._options.path).readers.hold(self._options.reader, offset)


def _read(options: ChannelOptions, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, RowRange):
        return
    wanted = to_arrow_schema(schema, timezone="UTC")
    channel = Channel(options.path)
    require_columns([*channel.schema.names, *METADATA], wanted.names, f"channel '{channel.name}'")
    for block in channel.read(partition.start, partition.end - partition.start):
        marks = 1 if options.marks and block.rows.num_rows == 0 else 0
        if block.rows.num_rows or marks:
            yield _batch(block, wanted, block.rows.num_rows + marks, channel.name)


def _batch(block: Block, wanted: pa.Schema, length: int, name: str) -> pa.RecordBatch:
    """The wanted columns of a block, and what the channel knows of its rows."""
    own = [field.name for field in wanted if field.name not in METADATA]
    rows = pa.Table.from_batches([block.rows]).select(own)
    if length > rows.num_rows:
        rows = pa.table([pa.nulls(length, field.type) for field in rows.schema], schema=rows.schema)
    known = {
        "_offset": lambda kind: pa.array(range(block.offset, block.offset + length)).cast(kind),
        "_watermark": lambda kind: constant(block.watermark, kind, length),
        "_appended": lambda kind: constant(block.appended, kind, length),
    }
    for field in wanted:
        if field.name in known:
            rows = rows.append_column(field.name, known[field.name](field.type))
    # The batch is made from columns: a table without columns would forget how many rows it has.
    made = conform(rows, wanted, f"channel '{name}'")
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in made.columns], schema=wanted)


def channel_options(folder: Path, name: str, reader: str) -> dict[str, str]:
    """The options with which Spark reads a channel of a folder under a reader's name."""
    return {"path": str((folder / name).resolve()), "reader": reader}
