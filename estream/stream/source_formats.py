"""EStream's own sources by the name of their format, and a stream's source as Spark reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from estream.errors import EStreamError, Problem
from estream.spec.checked import Checked, CheckedQuery
from estream.spec.model import Stream
from estream.stream import source_http
from estream.stream.channel import Channel
from estream.stream.channel_schema import arrow_schema
from estream.stream.clock import ClockSource
from estream.stream.source_channel import METADATA, ChannelOptions, ChannelSource, channel_options
from estream.stream.source_linear_road import LinearRoad, LinearRoadSource
from estream.stream.source_options import OptionError
from estream.stream.source_replay import Replay, ReplaySource
from estream.stream.source_rows import require_columns

SOURCES: Final[tuple[type[DataSource], ...]] = (ChannelSource, ClockSource, LinearRoadSource, ReplaySource)


_CHECKS: Final[dict[str, Callable[[Mapping[str, str]], object]]] = {
    ChannelSource.name(): ChannelOptions.of,
    LinearRoadSource.name(): LinearRoad.of,
    ReplaySource.name(): Replay.of,
    source_http.FORMAT: lambda options: source_http.HttpOptions.of(options, ""),
}


@dataclass(frozen=True, slots=True)
class SparkSource:
    """What Spark is told to read."""

    format: str
    options: dict[str, str]


def register(spark: SparkSession) -> None:
    """Make every source known to the session; doing it twice is harmless."""
    for source in SOURCES:
        spark.dataSource.register(source)


def check_source(query: CheckedQuery) -> list[Problem]:
    """What is wrong with the options of a stream's source, if it is one of EStream's own."""
    source = _stream(query).source
    known = _known_options(query)
    check = _CHECKS.get(ChannelSource.name() if source.channel is not None else str(source.format))
    try:
        if check is not None:
            check(known | _options(query))
    except OptionError as error:
        message = f"stream '{query.name}': {error}"
        written = {key.lower(): (key, value) for key, value in source.options.items()}
        key, value = written.get(error.option.lower(), (None, source.channel or source.format))
        at = key if error.unknown else value
        return [at.problem(message)] if at is not None else []
    return []


def spark_source(query: CheckedQuery, channels: Path, reader: str) -> SparkSource:
    """The format and options with which Spark reads a stream; EStreamError tells a wrong option at its place.

    A channel that nobody has made yet is made with the stream's columns. `reader` is the name under which a channel
    keeps rows for this stream: it must be the same after a restart and no other reader's.
    """
    if problems := check_source(query):
        raise EStreamError(problems)
    source, options = _stream(query).source, _options(query)
    if source.channel is not None:
        _open(Channel(channels / source.channel), query)
        return SparkSource(ChannelSource.name(), options | channel_options(channels, source.channel, reader))
    if source.format == source_http.FORMAT:
        name = source_http.http_channel(query.name)
        _open(Channel(channels / name), query)
        return SparkSource(ChannelSource.name(), channel_options(channels, name, reader))
    if source.format == ReplaySource.name():
        options = {"dead_letters": str(channels.resolve())} | _known_options(query) | options
    return SparkSource(str(source.format), options)


def said_by_source(error: Exception) -> str | None:
    """What one of EStream's own sources said, if that is why Spark failed; Spark wraps it in a worker's traceback."""
    found = re.search(r"(?:EStreamError|OptionError): (.+?)(?:\n\s*\n|\n? SQLSTATE|\n\tat |\Z)", str(error), re.DOTALL)
    return found[1].strip() if found else None


def receivers(queries: Iterable[CheckedQuery], channels: Path) -> list[source_http.Receiver]:
    """The receivers of the streams that come by http, not started yet."""
    return [
        source_http.receiver(query.name, query.columns, query.time or "", _options(query), channels)
        for query in queries
        if query.kind == "stream" and _stream(query).source.format == source_http.FORMAT
    ]


def playback_speed(format: str, options: Mapping[str, str]) -> float:
    """How many times faster than the clock the time of a source goes; 1 for those that are not played back."""
    if format == LinearRoadSource.name():
        return LinearRoad.of(options).speed
    if format == ReplaySource.name():
        return Replay.of({"time": "", **options}).speed
    return 1.0


def playback_speeds(checked: Checked) -> dict[str, float]:
    """The speed of every stream."""
    streams = [query for query in checked.queries.values() if query.kind == "stream"]
    return {query.name: playback_speed(str(_stream(query).source.format), _options(query)) for query in streams}


def _stream(query: CheckedQuery) -> Stream:
    if not isinstance(query.spec, Stream):
        raise TypeError(f"'{query.name}' is no stream")
    return query.spec


def _known_options(query: CheckedQuery) -> dict[str, str]:
    """Options that follow from the stream itself."""
    source = _stream(query).source
    if source.format == ReplaySource.name():
        return {"time": query.time or "", "stream": query.name}
    return {"path": ""} if source.channel is not None else {}


def _options(query: CheckedQuery) -> dict[str, str]:
    return {str(key): str(value) for key, value in _stream(query).source.options.items()}


def _open(channel: Channel, query: CheckedQuery) -> None:
    columns = {name: kind for name, kind in query.columns.items() if name not in METADATA}
    if channel.exists:
        require_columns(channel.schema.names, list(columns), f"channel '{channel.name}'")
    else:
        channel.create(arrow_schema(columns), query.time if query.time in columns else None)
