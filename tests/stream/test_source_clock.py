"""The clock source: it ticks live, repeats a tick with its batch, and is silent in a run over what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable

from estream.stream.clock import ClockReader, write_beats


def reader(*moments: int, beats: Path | None = None) -> ClockReader:
    times = iter(moments)
    return ClockReader(str(beats) if beats else None, lambda: next(times))


def test_time_never_goes_back_though_the_clock_is_set_back() -> None:
    clock = reader(1000, 1400, 1200, 1500)
    offset, ticks = clock.initialOffset(), []
    for _ in range(4):
        offset = clock.latestOffset(offset, ReadAllAvailable())
        ticks.append(offset["now"])
    assert ticks == [1000, 1400, 1401, 1500]


def test_a_batch_has_one_row_the_same_whenever_it_is_read(tmp_path: Path) -> None:
    beats = tmp_path / "beats.json"
    write_beats(beats, {"Calls": 7})
    clock = reader(1500, beats=beats)
    end = clock.latestOffset({"now": 1000, "beats": "{}"}, ReadAllAvailable())
    write_beats(beats, {"Calls": 8})
    assert clock.partitions(end, end) == []
    (task,) = clock.partitions({"now": 1000, "beats": "{}"}, end)
    for _ in range(2):
        (batch,) = clock.read(task)
        assert batch.to_pylist() == [{"now": 1500, "beats": '{"Calls": 7}'}]


def test_it_ticks_live_and_is_silent_in_a_run_over_what_is_there(sourced: SparkSession, tmp_path: Path) -> None:
    ticks: list[Any] = []
    stream = sourced.readStream.format("estream_clock").load()
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer = writer.foreachBatch(lambda batch, _: ticks.extend(batch.collect()))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert ticks == []
    live = writer.trigger(processingTime="10 milliseconds").start()
    while len(ticks) < 2:
        assert live.exception() is None
        live.awaitTermination(0.1)
    live.stop()
    assert 0 < ticks[0].now < ticks[1].now
