"""EStream's own data sources, by the name of their format."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from estream.stream.source_channel import ChannelSource

SOURCES: Final[tuple[type[DataSource], ...]] = (ChannelSource,)


def register(spark: SparkSession) -> None:
    """Make every source known to the session; doing it twice is harmless."""
    for source in SOURCES:
        spark.dataSource.register(source)
