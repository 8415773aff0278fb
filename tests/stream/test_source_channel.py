"""The data source `estream_channel`: the rows of a channel through Spark, each once, in batches as asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from estream.stream.channel import Channel
from estream.stream.channel_schema import parse_columns
from estream.stream.source_formats import said_by_source


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel(tmp_path / "readings").create(parse_columns("ts timestamp, n bigint, tags array<string>"))


def fill(channel: Channel, *values: int, watermark: int | None = None) -> None:
    times = pa.array([value * 1_000_000 for value in values], pa.timestamp("us", "UTC"))
    tags = pa.array([["a", str(value)] for value in values], pa.list_(pa.string()))
    channel.append(pa.table({"ts": times, "n": pa.array(values, pa.int64()), "tags": tags}), watermark)


def stream(sourced: SparkSession, channel: Channel, schema: str | None = None, **options: str) -> DataFrame:
    reader = sourced.readStream.format("estream_channel").option("path", str(channel.path)).options(**options)
    return (reader.schema(schema) if schema else reader).load()


def run_once(frame: DataFrame, checkpoint: Path) -> list[list[Any]]:
    """The rows of each micro-batch that has any, of a run over what is there."""
    batches: list[list[Any]] = []
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.foreachBatch(lambda batch, _: batches.append(sorted(batch.collect()))).start().awaitTermination()
    return [[row[0] if len(row) == 1 else tuple(row) for row in batch] for batch in batches if batch]


def test_every_row_comes_once_also_after_a_restart(sourced: SparkSession, channel: Channel, tmp_path: Path) -> None:
    numbers = stream(sourced, channel, "n bigint", max_rows="3", reader="test")
    fill(channel, 1, 2, 3, 4)
    fill(channel, 5)
    assert run_once(numbers, tmp_path / "checkpoint") == [[1, 2, 3], [4, 5]]
    fill(channel, 6, 7)
    assert run_once(numbers, tmp_path / "checkpoint") == [[6, 7]]
    assert channel.readers.offsets()["test"] >= 5


def test_a_channel_is_a_table_too_with_its_own_columns(sourced: SparkSession, channel: Channel) -> None:
    fill(channel, 1, 2, 3)
    table = (
        sourced.read.format("estream_channel").option("path", str(channel.path)).option("partition_rows", "2").load()
    )
    assert table.schema.simpleString() == "struct<ts:timestamp,n:bigint,tags:array<string>>"
    assert [(row.n, row.tags) for row in table.orderBy("n").collect()] == [
        (1, ["a", "1"]),
        (2, ["a", "2"]),
        (3, ["a", "3"]),
    ]


def test_offset_watermark_and_time_of_the_append_can_be_asked_for(
    sourced: SparkSession, channel: Channel, tmp_path: Path
) -> None:
    fill(channel, 1, 2, watermark=5_000_000)
    channel.append(channel.schema.empty_table(), watermark=6_000_000)
    schema = "n int, _offset bigint, _watermark timestamp, _appended timestamp"
    frame = stream(sourced, channel, schema, marks="true")
    shown = frame.selectExpr("_offset", "n", "unix_seconds(_watermark)", "_appended > timestamp'2020-01-01'")
    assert run_once(shown, tmp_path / "checkpoint") == [[(0, 1, 5, True), (1, 2, 5, True), (2, None, 6, True)]]


def test_only_what_comes_next_can_be_asked_for(sourced: SparkSession, channel: Channel, tmp_path: Path) -> None:
    fill(channel, 1)
    later = stream(sourced, channel, "n bigint", **{"from": "last"})
    assert run_once(later, tmp_path / "checkpoint") == []
    fill(channel, 2)
    assert run_once(later, tmp_path / "checkpoint") == [[2]]


def test_a_wrong_option_or_column_is_told(sourced: SparkSession, channel: Channel, tmp_path: Path) -> None:
    with pytest.raises(
        PySparkException, match="source 'estream_channel' has no option 'maxrows'; did you mean 'max_rows'"
    ):
        stream(sourced, channel, maxrows="3")
    fill(channel, 1)
    with pytest.raises(PySparkException) as error:
        run_once(stream(sourced, channel, "m int"), tmp_path / "checkpoint")
    right = "ts, n, tags, _offset, _watermark, _appended"
    assert said_by_source(error.value) == f"channel 'readings' has no column 'm'; right: {right}"
