"""Which source Spark is told to read for a stream of a CEQ file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from estream.app import load
from estream.errors import EStreamError
from estream.spec.checked import CheckedQuery
from estream.stream.channel import Channel
from estream.stream.channel_schema import parse_columns
from estream.stream.session import for_detection
from estream.stream.source import Files, open_stream
from estream.stream.source_formats import SparkSource, check_source, receivers, spark_source

CEQ = """\
version: 1
name: sources
streams:
  S:
    source: {source}
    schema: {{{columns}}}
    time: {time}
events:
  E: {{on: S}}
"""


def stream(
    folder: Path, source: str, columns: str = "ts: timestamp, n: int", time: str = "ts", **environment: str
) -> CheckedQuery:
    path = folder / "sources.yaml"
    path.write_text(CEQ.format(source=source, columns=columns, time=time))
    loaded = load(path, environment)
    assert loaded.checked is not None
    assert not loaded.is_wrong
    return loaded.checked.queries["S"]


def test_a_spark_format_passes_through(tmp_path: Path) -> None:
    query = stream(tmp_path, "{format: rate, options: {rowsPerSecond: 5}}")
    assert spark_source(query, tmp_path, "q/S") == SparkSource("rate", {"rowsPerSecond": "5"})
    assert receivers([query], tmp_path) == []


def test_a_format_with_columns_of_its_own_is_asked_for_those_of_the_stream(tmp_path: Path, spark: SparkSession) -> None:
    query = stream(tmp_path, "{format: rate}", "value: int, timestamp: timestamp", time="timestamp")
    frame = open_stream(for_detection(spark, 1), query, "S", Files(tmp_path))
    assert frame.schema.simpleString() == "struct<value:int,timestamp:timestamp>"
    wrong = stream(tmp_path, "{format: rate}", "values: bigint, timestamp: timestamp", time="timestamp")
    with pytest.raises(EStreamError, match=r"stream 'S', format 'rate' has no column 'values'.*'value'"):
        open_stream(for_detection(spark, 1), wrong, "S", Files(tmp_path))


def test_a_channel_is_made_with_the_columns_of_the_stream_that_reads_it(tmp_path: Path) -> None:
    query = stream(tmp_path, "{channel: readings, options: {from: last}}")
    path = str(tmp_path / "readings")
    for _ in range(2):
        wanted = SparkSource("estream_channel", {"from": "last", "path": path, "reader": "q/S"})
        assert spark_source(query, tmp_path, "q/S") == wanted
    channel = Channel(tmp_path / "readings")
    assert (channel.schema, channel.time) == (parse_columns("ts timestamp, n int"), "ts")


def test_what_the_channel_fills_itself_is_no_column_of_its_own(tmp_path: Path) -> None:
    query = stream(tmp_path, "{channel: raised}", "_appended: timestamp, n: int", "_appended")
    for _ in range(2):
        spark_source(query, tmp_path, "q/S")
    assert Channel(tmp_path / "raised").schema == parse_columns("n int")


def test_a_channel_that_lacks_a_column_is_told(tmp_path: Path) -> None:
    Channel(tmp_path / "readings").create(parse_columns("ts timestamp, m int"))
    with pytest.raises(EStreamError, match="channel 'readings' has no column 'n'; right: ts, m"):
        spark_source(stream(tmp_path, "{channel: readings}"), tmp_path, "q/S")


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ("{format: replay, options: {speed: 2x}}", "5:22", "source 'replay' needs the option 'path'"),
        ("{format: replay, options: {path: a.csv, sped: 2x}}", "5:53", "source 'replay' has no option 'sped'; did you"),
        ("{format: linear_road, options: {cars: 0}}", "5:51", "source 'linear_road': option 'cars' is '0'; it must be"),
        (
            "{format: http, options: {timeout: soon}}",
            "5:47",
            "source 'http': option 'timeout': 'soon' is not a duration",
        ),
        (
            "{channel: c, options: {from: here}}",
            "5:42",
            "source 'estream_channel': option 'from' is 'here'; it must be",
        ),
    ],
)
def test_a_wrong_option_is_told_at_its_place(tmp_path: Path, source: str, place: str, message: str) -> None:
    query = stream(tmp_path, source)
    with pytest.raises(EStreamError) as error:
        spark_source(query, tmp_path, "q/S")
    assert f"sources.yaml:{place}: stream 'S': {message}" in str(error.value)


def test_a_secret_stays_one_in_the_message(tmp_path: Path) -> None:
    query = stream(tmp_path, "{format: http, options: {timeout: '${WAIT}'}}", WAIT="hush")
    (problem,) = check_source(query)
    assert "hush" not in str(problem)


def test_http_is_a_receiver_and_the_channel_behind_it(tmp_path: Path) -> None:
    query = stream(tmp_path, "{format: http, options: {port: 0, token: secret}}")
    (receiver,) = receivers([query], tmp_path)
    source = spark_source(query, tmp_path, "q/S")
    assert source.options["path"] == str(receiver.channel.path)
    assert receiver.channel.schema == parse_columns("ts timestamp, n int")
    assert receiver.url.endswith("/S")


def test_a_replay_knows_its_time_column_and_where_dead_letters_go(tmp_path: Path) -> None:
    source = spark_source(stream(tmp_path, "{format: replay, options: {path: a.csv, speed: 10x}}"), tmp_path, "q/S")
    wanted = {"path": "a.csv", "speed": "10x", "time": "ts", "dead_letters": str(tmp_path), "stream": "S"}
    assert source == SparkSource("replay", wanted)
