"""Replay: a file played back in order of its times, at its speed; what cannot be read is a dead letter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StructType

from estream.errors import EStreamError
from estream.stream.channel_dead_letter import dead_letters
from estream.stream.channel_schema import parse_columns
from estream.stream.source_replay import Replay, ReplayReader
from estream.stream.source_rows import Pace

SCHEMA = from_arrow_schema(parse_columns("ts timestamp, n int, note string"))
ROWS = [(30, 3, "c"), (10, 1, "a"), (20, 2, None), (20, 4, "b, too")]


def table() -> pa.Table:
    times = pa.array([seconds * 1_000_000 for seconds, _, _ in ROWS], pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "n": pa.array([n for _, n, _ in ROWS], pa.int32()), "note": [t for _, _, t in ROWS]})


def write(folder: Path, kind: str) -> str:
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table(), path)
    elif kind == "csv":
        pa.csv.write_csv(table(), path)
    else:
        rows = [{"ts": f"1970-01-01T00:00:{second}Z", "n": n, "note": note} for second, n, note in ROWS]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def numbers(path: str, schema: StructType = SCHEMA, **options: str) -> list[Any]:
    found = Replay.of({"path": path, "time": "ts", **options}).recording(schema)
    return list(found.rows["n"].to_pylist())


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_rows_come_in_order_of_time_and_then_of_the_file(tmp_path: Path, kind: str) -> None:
    assert numbers(write(tmp_path, kind)) == [1, 2, 4, 3]


def test_a_time_without_an_offset_is_utc(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("n,other,ts\n1,x,1970-01-01 00:00:05\n")
    reader = ReplayReader(
        Replay.of({"path": str(tmp_path / "rows.csv"), "time": "ts"}),
        from_arrow_schema(parse_columns("ts timestamp, n int")),
    )
    assert reader._times.tolist() == [5_000_000]


@pytest.mark.parametrize(
    ("name", "content", "letters"),
    [
        (
            "rows.csv",
            "ts,n,note\n1970-01-01T00:00:01Z,1,a\n1970-01-01T00:00:02Z,two,b\n,3,c\nsoon,4,d\n1970-01-01T00:00:04Z,4\n1970-01-01T00:00:05Z,5,e\n",
            {"3": "column 'n' is int; found the text 'two'", "6": "it has more or fewer fields than the first line"},
        ),
        (
            "rows.jsonl",
            '{"ts": 1000000, "n": 1}\n{"ts": 2000000, "n": "two"}\n{"n": 3}\n{"ts": 4\n{"ts": 5000000, "n": 5}\n',
            {"2": "column 'n' is int; found the text 'two'", "4": "this is no JSON: expecting ',' delimiter"},
        ),
    ],
)
def test_a_record_that_cannot_be_read_is_a_dead_letter_once(
    tmp_path: Path, name: str, content: str, letters: dict[str, str]
) -> None:
    path = tmp_path / name
    path.write_text(content)
    for _ in range(2):
        assert numbers(str(path), dead_letters=str(tmp_path / "channels"), stream="Readings") == [1, 5]
    rows = [row for block in dead_letters(tmp_path / "channels").read() for row in block.rows.to_pylist()]
    assert {row["source"] for row in rows} == {"Readings"}
    told = {row["position"].removeprefix(f"{path}:"): row["reason"] for row in rows}
    assert letters.items() <= told.items()
    assert "it has no time: 'ts' is null" in told.values()
    assert len(rows) == content.count("\n") - (3 if name == "rows.csv" else 2)
    with pytest.raises(EStreamError, match=f"{path}:.:1: column 'n' is int; found the text 'two'"):
        numbers(str(path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.csv", "source 'replay': cannot read .*none.csv: no such file or directory"),
        ("rows.txt", "source 'replay': .*rows.txt is none of .csv, .json"),
        ("other.csv", r"other.csv has no column 'note'; right: ts, n"),
        ("broken.parquet", "source 'replay': cannot read .*broken.parquet: Parquet magic bytes not found"),
    ],
)
def test_a_file_that_cannot_be_played_is_told(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "rows.txt").write_text("")
    (tmp_path / "other.csv").write_text("ts,n\n")
    (tmp_path / "broken.parquet").write_text("no parquet at all")
    with pytest.raises(EStreamError, match=message):
        numbers(str(tmp_path / name))


def test_rows_are_due_by_the_clock_times_the_speed(tmp_path: Path) -> None:
    moments = iter([100.0, 100.0, 100.5, 101.0, 101.0, 900.0])
    play = Replay.of({"path": write(tmp_path, "csv"), "time": "ts", "speed": "10x"})
    reader = ReplayReader(play, SCHEMA, Pace(lambda: next(moments)))
    offset, seen = reader.initialOffset(), []
    for limit in (ReadAllAvailable(), ReadAllAvailable(), ReadMaxRows(1), ReadMaxRows(9), ReadAllAvailable()):
        offset = reader.latestOffset(offset, limit)
        seen.append(offset["row"])
    assert seen == [1, 1, 2, 3, 4]


def test_a_run_that_goes_on_waits_for_nothing_it_has_played(tmp_path: Path) -> None:
    play = Replay.of({"path": write(tmp_path, "csv"), "time": "ts"})
    reader = ReplayReader(play, SCHEMA, Pace(lambda: 5.0))
    assert reader.latestOffset({"row": 3}, ReadAllAvailable()) == {"row": 4}
    assert ReplayReader(play, SCHEMA, Pace(lambda: 5.0)).latestOffset({"row": 4}, ReadAllAvailable()) == {"row": 4}


@pytest.mark.parametrize("speed", ["0x", "quick", "-1"])
def test_a_speed_is_a_number_and_x(speed: str) -> None:
    with pytest.raises(EStreamError, match="it must be a number above zero and x, like 10x"):
        Replay.of({"path": "rows.csv", "time": "ts", "speed": speed})


def test_spark_plays_the_whole_file_in_a_run_over_what_is_there(sourced: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, "csv")
    stream = sourced.readStream.format("replay").schema(SCHEMA).options(path=path, time="ts", max_rows="3").load()
    batches: list[list[int]] = []
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    writer.foreachBatch(lambda batch, _: batches.append([row.n for row in batch.collect()])).start().awaitTermination()
    assert batches == [[1, 2, 4], [3]]
