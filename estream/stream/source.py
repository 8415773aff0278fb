"""Streams and tables as Spark reads them: any format with its options, EStream's own, and channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from estream.plan.model import Leaf
from estream.plan.need import RAISED_TIME
from estream.spec import model
from estream.spec.checked import CheckedQuery
from estream.stream.future import BEAT, FutureStream
from estream.stream.input import input_format
from estream.stream.raised import channel_of
from estream.stream.source_channel import ChannelSource, channel_options
from estream.stream.source_formats import SOURCES, spark_source
from estream.stream.source_rows import require_columns

CORRUPT = "_corrupt_record"
"""The column in which Spark keeps what it cannot read."""

_TOLERANT = ("json", "csv")
_FILES = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
_TYPED = (*_FILES, *(source.name() for source in SOURCES))
"""Formats that are told which columns to give. Others, like `kafka` and `rate`, have columns of their own."""
_OFFSET = "_offset"


@dataclass(frozen=True, slots=True)
class Files:
    """Where channels are, and what bounded input stands in for a stream: a path by the stream's name."""

    channels: Path
    inputs: Mapping[str, Path] | None = None


def open_stream(session: SparkSession, query: CheckedQuery, name: str, files: Files) -> DataFrame:
    """The rows of a stream as they come, read by a scan of this name."""
    source = spark_source(query, files.channels, name)
    reader = session.readStream.format(source.format).options(**_corrupt(source.format), **source.options).name(name)
    if source.format in _TYPED:
        return reader.schema(_schema(query, source.format)).load()
    return _chosen(reader.load(), query.columns, f"stream '{query.name}', format '{source.format}'")


def position(scan: DataFrame, stream: model.Stream) -> Column:
    """Where in its source a row of a scan was: its offset in a channel, or its file; null where neither is known."""
    if _OFFSET in scan.columns:
        return F.concat(F.lit("offset "), F.col(_OFFSET).cast("string"))
    return F.col("_metadata.file_path") if stream.source.format in _FILES else F.lit(None).cast("string")


def open_table(session: SparkSession, table: model.Table, files: Files) -> DataFrame:
    """Static data, as it is now."""
    channel = table.source.channel
    kind = ChannelSource.name() if channel is not None else str(table.source.format)
    reader = session.read.format(kind).options(**{str(key): str(value) for key, value in table.source.options.items()})
    columns = {str(name): str(type_of) for name, type_of in (table.columns or {}).items()}
    if columns and kind in _TYPED:
        reader = reader.schema(", ".join(f"`{name}` {type_of}" for name, type_of in columns.items()))
    read = reader.load(None if channel is None else str(files.channels / channel))
    return _chosen(read, columns, f"table of format '{kind}'") if columns else read


def _chosen(read: DataFrame, columns: Mapping[str, object], what: str) -> DataFrame:
    """The columns that were asked for, with the types that were asked for."""
    require_columns(read.columns, list(columns), what)
    return read.select(*(F.col(f"`{name}`").cast(str(kind)).alias(name) for name, kind in columns.items()))


def open_input(session: SparkSession, query: CheckedQuery, path: Path) -> DataFrame:
    """The rows of a bounded input that stands in for a stream; the file's name tells its format."""
    kind = input_format(path)
    reader = session.read.format(kind).schema(_schema(query, kind)).options(**_corrupt(kind))
    if kind == "csv":
        reader = reader.option("header", "true")
    return reader.load(str(path))


def open_raised(session: SparkSession, leaf: Leaf, files: Files, owner: str) -> DataFrame:
    """The occurrences of a raised event: as they come in a live run, else those that were recorded.

    `owner` is the plan: under its name the channel keeps what was not read yet.
    """
    channel = channel_of(leaf, files.channels)
    columns = ", ".join([f"`{RAISED_TIME}` timestamp", *(f"`{column.name}` {column.type}" for column in leaf.columns)])
    if files.inputs is not None:
        return session.read.format(ChannelSource.name()).schema(columns).load(str(channel.path.resolve()))
    options = channel_options(files.channels, leaf.name, f"{owner} {leaf.name}")
    reader = session.readStream.format(ChannelSource.name()).schema(columns).options(**options)
    return reader.name(f"estream_raised_{leaf.name}").load()


def _schema(query: CheckedQuery, kind: str) -> str:
    columns = [f"`{name}` {kind_of}" for name, kind_of in query.columns.items()]
    if isinstance(query.spec, FutureStream):
        columns.append(f"`{BEAT}` boolean")
    if kind == ChannelSource.name() and _OFFSET not in query.columns:
        columns.append(f"{_OFFSET} bigint")
    return ", ".join([*columns, f"`{CORRUPT}` string"] if kind in _TOLERANT else columns)


def _corrupt(kind: str) -> dict[str, str]:
    return {"columnNameOfCorruptRecord": CORRUPT} if kind in _TOLERANT else {}
