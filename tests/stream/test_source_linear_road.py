"""The simulated expressway: each row follows from the seed and its number, cars move as cars do, accidents are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from estream.app import load
from estream.errors import EStreamError
from estream.stream.layout import timings_of
from estream.stream.source_expressway import ACCIDENT, SHOULDER, Expressway, Reports
from estream.stream.source_formats import playback_speed, playback_speeds
from estream.stream.source_linear_road import LinearRoad, write_accidents

CARS = 200
HOUR = 120 * CARS
ROAD = Expressway(seed=7, cars=CARS, stops=0.03)


def same(one: Reports, other: Reports) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Reports.__slots__)


@given(st.integers(0, 3 * HOUR), st.integers(0, 3000))
@settings(max_examples=30)
def test_a_row_is_the_same_in_whatever_batch_it_is_made(first: int, count: int) -> None:
    wide = ROAD.reports(max(first - 500, 0), first + count + 500)
    skip = min(first, 500)
    part = Reports(*(getattr(wide, name)[skip : skip + count] for name in Reports.__slots__))
    assert same(Expressway(seed=7, cars=CARS, stops=0.03).reports(first, first + count), part)


def test_another_seed_is_another_road() -> None:
    assert not same(ROAD.reports(0, 100), Expressway(seed=8, cars=CARS, stops=0.03).reports(0, 100))


@pytest.fixture(scope="module")
def reports() -> Reports:
    return ROAD.reports(0, 4 * HOUR)


def test_every_car_reports_every_30_seconds_and_rows_are_in_order_of_time(reports: Reports) -> None:
    assert np.all(np.diff(reports.second) >= 0)
    order = np.lexsort((reports.second, reports.car))
    same_car = np.diff(reports.car[order]) == 0
    assert set(np.diff(reports.second[order])[same_car].tolist()) == {30}


def test_no_car_jumps_nor_drives_backwards(reports: Reports) -> None:
    order = np.lexsort((reports.second, reports.car))
    same_car = np.diff(reports.car[order]) == 0
    forwards = np.where(reports.direction[order] == 0, 1, -1)[1:]
    miles = (np.diff(reports.position[order]) * forwards)[same_car]
    assert miles.min() >= -0.001
    assert miles.max() < 75 * 30 / 3600
    assert reports.position.min() >= 0
    assert reports.position.max() <= 100


def test_a_car_in_an_accident_stands_in_its_lane_until_the_road_is_free(reports: Reports) -> None:
    accidents = ROAD.accidents(0, 3 * 3600)
    assert accidents.car.size > 5
    for number, car in enumerate(accidents.car):
        during = (reports.car == car) & (reports.second >= accidents.event[number])
        during &= reports.second < accidents.over[number]
        assert set(reports.speed[during].tolist()) <= {0.0}
        assert len(set(reports.position[during].tolist())) <= 1
        assert set(reports.lane[during].tolist()) <= {int(accidents.lane[number])}


def test_cars_that_come_up_behind_an_accident_brake_and_others_do_not(reports: Reports) -> None:
    blocks = [ROAD.incidents(hour) for hour in range(4)]
    slow = (reports.speed > 0) & (reports.speed < 40)
    assert slow.any()
    for second, way, direction, position in zip(
        reports.second[slow], reports.way[slow], reports.direction[slow], reports.position[slow], strict=True
    ):
        along = position if direction == 0 else 100 - position
        assert any(
            np.any(
                (trips.kind != 2)
                & (trips.way == way)
                & (trips.direction == direction)
                & (trips.event <= second)
                & (second < trips.over)
                & (along <= trips.place + 0.001)
                & (along >= trips.place - 2.001)
            )
            for trips in blocks
        )


def test_who_stands_on_the_shoulder_is_no_accident(reports: Reports) -> None:
    on_shoulder = set(reports.car[reports.lane == SHOULDER].tolist())
    assert on_shoulder
    assert on_shoulder.isdisjoint(ROAD.accidents(0, 4 * 3600).car.tolist())
    assert set(ROAD.accidents(0, 4 * 3600).kind.tolist()) == {ACCIDENT}


def test_the_file_of_accidents_grows_and_has_each_once(tmp_path: Path) -> None:
    play = LinearRoad.of({"cars": "200", "seed": "7", "stops": "0.03"})
    file = tmp_path / "truth" / "accidents.jsonl"
    for second in (1000, 2500, 2500, 7200):
        write_accidents(play, file, second)
    with file.open("a") as opened:
        opened.write('{"start": "half a li')
    write_accidents(play, file, 3 * 3600)
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["car_id"] for row in told] == ROAD.accidents(0, 3 * 3600).car.tolist()
    assert told[0]["start"] < told[0]["end"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"car": "5"}, "source 'linear_road' has no option 'car'; did you mean 'cars'?"),
        ({"cars": "many"}, "source 'linear_road': option 'cars' is 'many'; it must be a whole number, at least 1"),
        ({"rate": "0"}, "source 'linear_road': option 'rate' is '0'; it must be a number above zero"),
        (
            {"start": "soon"},
            "source 'linear_road': option 'start' is 'soon'; it must be a time like 2026-01-01T00:00:00Z",
        ),
    ],
)
def test_a_wrong_option_is_told(options: dict[str, str], message: str) -> None:
    with pytest.raises(EStreamError) as error:
        LinearRoad.of(options)
    assert str(error.value) == message


def test_the_speed_of_playback_follows_from_rate_and_cars() -> None:
    assert playback_speed("linear_road", {"cars": "500", "rate": "5000"}) == pytest.approx(300)
    assert playback_speed("replay", {"path": "x", "time": "ts", "speed": "10x"}) == 10
    assert playback_speed("kafka", {"subscribe": "cars"}) == 1


# Through Spark.


def test_spark_gets_the_rows_of_the_road_in_batches(sourced: SparkSession, tmp_path: Path) -> None:
    options = {
        "cars": "200",
        "seed": "7",
        "stops": "0.03",
        "rows": "12000",
        "max_rows": "5000",
        "partition_rows": "2000",
    }
    truth = tmp_path / "accidents.jsonl"
    stream = sourced.readStream.format("linear_road").options(**options, accidents=str(truth)).load()
    batches: list[list[Any]] = []
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    started = writer.foreachBatch(
        lambda batch, _: batches.append(batch.selectExpr("unix_seconds(ts)", "car_id", "x_pos", "lane").collect())
    ).start()
    started.awaitTermination()
    wanted = ROAD.reports(0, 12000)
    begin = 1_767_225_600
    rows = [
        (begin + int(second), int(car), float(position), int(lane))
        for second, car, position, lane in zip(wanted.second, wanted.car, wanted.position, wanted.lane, strict=True)
    ]
    assert [len(batch) for batch in batches] == [5000, 5000, 2000]
    assert sorted(tuple(row) for batch in batches for row in batch) == sorted(rows)
    assert truth.exists()


def test_the_clock_goes_at_the_speed_of_a_stream_that_is_played_back() -> None:
    found = load(Path(__file__).parents[2] / "ceq_specs" / "car_adn.yaml", {})
    assert found.plan is not None
    assert found.checked is not None
    assert timings_of(found.plan, playback_speeds(found.checked))["CarLocStr"].speed == pytest.approx(300)
