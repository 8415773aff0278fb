"""EStream's own data sources, by the name of their format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from estream.stream.source_channel import ChannelSource
from estream.stream.source_clock import ClockSource
from estream.stream.source_linear_road import LinearRoad, LinearRoadSource
from estream.stream.source_replay import Replay, ReplaySource

SOURCES: Final[tuple[type[DataSource], ...]] = (ChannelSource, ClockSource, LinearRoadSource, ReplaySource)


def register(spark: SparkSession) -> None:
    """Make every source known to the session; doing it twice is harmless."""
    for source in SOURCES:
        spark.dataSource.register(source)


def playback_speed(format: str, options: Mapping[str, str]) -> float:
    """How many times faster than the clock the time of a source goes; 1 for those that are not played back."""
    if format == LinearRoadSource.name():
        return LinearRoad.of(options).speed
    if format == ReplaySource.name():
        return Replay.of(options).speed
    return 1.0
