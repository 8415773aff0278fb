"""The clock source: it ticks live, repeats a tick with its batch, and is silent in a run over what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable

from estream.errors import EStreamError
from estream.stream.channel_schema import parse_columns
from estream.stream.source_clock import ClockReader, ClockSource
from estream.stream.source_formats import register

SCHEMA = from_arrow_schema(parse_columns("ts timestamp, previous timestamp"))


def reader(*moments: int) -> ClockReader:
    times = iter(moments)
    return ClockReader(100, SCHEMA, lambda: next(times))


def test_a_tick_is_a_multiple_of_its_time_and_stands_still_in_between() -> None:
    clock = reader(1099, 1100, 1555, 1400)
    offset, ticks = clock.initialOffset(), []
    for _ in range(4):
        offset = clock.latestOffset(offset, ReadAllAvailable())
        ticks.append(offset["micros"])
    assert ticks == [1000, 1100, 1500, 1500]


def test_a_batch_has_one_row_the_same_whenever_it_is_read() -> None:
    clock = reader()
    assert clock.partitions({"micros": 1000}, {"micros": 1000}) == []
    (task,) = clock.partitions({"micros": 1000}, {"micros": 1500})
    for _ in range(2):
        (batch,) = clock.read(task)
        assert [column[0].value for column in batch.columns] == [1500, 1000]


def test_a_time_between_ticks_that_is_none_is_told() -> None:
    with pytest.raises(EStreamError, match="source 'estream_clock': option 'every': 'often' is not a duration"):
        ClockSource({"every": "often"})


def test_it_ticks_live_and_is_silent_in_a_run_over_what_is_there(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    ticks: list[Any] = []
    stream = spark.readStream.format("estream_clock").option("every", "1 us").load()
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer = writer.foreachBatch(lambda batch, _: ticks.extend(batch.collect()))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert ticks == []
    live = writer.trigger(processingTime="10 milliseconds").start()
    while len(ticks) < 2:
        assert live.exception() is None
        live.awaitTermination(0.1)
    live.stop()
    assert ticks[0].previous is None
    assert ticks[0].ts == ticks[1].previous < ticks[1].ts
