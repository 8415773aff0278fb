"""Streams and tables as Spark reads them: any format with its options, EStream's own, and channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from estream.spec import model
from estream.spec.checked import CheckedQuery

CORRUPT = "_corrupt_record"
"""The column in which Spark keeps what it cannot read."""

_TOLERANT = ("json", "csv")


@dataclass(frozen=True, slots=True)
class Files:
    """Where channels are, and what bounded input stands in for a stream: a path by the stream's name."""

    channels: Path
    inputs: Mapping[str, Path] | None = None


def open_stream(session: SparkSession, query: CheckedQuery, name: str, files: Files) -> DataFrame:
    """The rows of a stream as they come, read by a scan of this name."""
    spec = _spec(query)
    reader = session.readStream.schema(_schema(query, _format(spec.source))).format(_format(spec.source))
    for key, value in _options(spec.source, files).items():
        reader = reader.option(key, value)
    return reader.name(name).load()


def open_table(session: SparkSession, table: model.Table, files: Files) -> DataFrame:
    """Static data, as it is now."""
    reader = session.read.format(_format(table.source))
    if table.columns is not None:
        reader = reader.schema(", ".join(f"`{name}` {kind}" for name, kind in table.columns.items()))
    for key, value in _options(table.source, files).items():
        reader = reader.option(key, value)
    return reader.load()


def open_input(session: SparkSession, query: CheckedQuery, path: Path) -> DataFrame:
    """The rows of a bounded input that stands in for a stream; the file's name tells its format."""
    files = path if path.is_file() else next((each for each in sorted(path.rglob("*.*")) if each.is_file()), path)
    kind = {".jsonl": "json", ".ndjson": "json"}.get(files.suffix, files.suffix.lstrip(".") or "parquet")
    reader = session.read.format(kind).schema(_schema(query, kind))
    if kind == "csv":
        reader = reader.option("header", "true")
    return reader.load(str(path))


def _spec(query: CheckedQuery) -> model.Stream:
    if not isinstance(query.spec, model.Stream):
        raise TypeError(f"'{query.name}' is no stream")
    return query.spec


def _format(source: model.Source) -> str:
    return "estream_channel" if source.channel is not None else str(source.format)


def _schema(query: CheckedQuery, kind: str) -> str:
    columns = [f"`{name}` {kind_of}" for name, kind_of in query.columns.items()]
    return ", ".join([*columns, f"`{CORRUPT}` string"] if kind in _TOLERANT else columns)


def _options(source: model.Source, files: Files) -> dict[str, str]:
    options = {str(key): str(value) for key, value in source.options.items()}
    if source.channel is not None:
        options["path"] = str(files.channels / source.channel)
    elif source.format in _TOLERANT:
        options.setdefault("columnNameOfCorruptRecord", CORRUPT)
    return options
