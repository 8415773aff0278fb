"""The Spark data source `linear_road`: cars on a simulated expressway, played at a rate of rows.

With the option `accidents` it writes the accidents that truly happened to a file, so that detections can be compared.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from estream.stream.source_expressway import REPORT_SECONDS, ROAD_MILES, Expressway, Reports, Trips
from estream.stream.source_options import SourceOptions
from estream.stream.source_rows import Pace, RowRange, default_limit, read_up_to, split, wanted_columns

FORMAT: Final = "linear_road"
COLUMNS: Final = "ts timestamp, car_id bigint, speed double, exp_way int, lane int, dir int, x_pos double"
_OPTIONS: Final = (
    *("cars", "rate", "seed", "ways", "stops", "start", "rows", "accidents", "max_rows", "partition_rows"),
)
_TAIL: Final = 4096
"""More than two lines of the file of accidents."""
_HOUR_OF_REPORTS: Final = 3600 // REPORT_SECONDS


@dataclass(frozen=True)
class LinearRoad:
    """A road and how it is played."""

    road: Expressway
    rate: float
    """Rows per second of the clock."""
    start: int
    """The time of second 0, in microseconds since the epoch."""
    rows: int | None
    """How many rows there are in all; nothing: it never ends."""
    accidents: str
    max_rows: int | None
    partition_rows: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LinearRoad:
        """The options as they are written."""
        given = SourceOptions(FORMAT, options, _OPTIONS)
        cars = given.whole("cars", 500, 1)
        ways = given.whole("ways", min(cars // 1000 + 1, 10), 1)
        road = Expressway(given.whole("seed", 0), cars, ways, given.number("stops", 0.01))
        if road.stops > 0.3:
            raise given.wrong("stops", str(road.stops), "at most 0.3")
        return cls(
            road,
            given.number("rate", cars / REPORT_SECONDS),
            given.timestamp("start", "2026-01-01T00:00:00Z"),
            given.optional_whole("rows"),
            given.text("accidents", ""),
            given.optional_whole("max_rows", 1),
            given.whole("partition_rows", 200_000, 1),
        )

    @property
    def speed(self) -> float:
        """How many times faster than the clock the road is played."""
        return self.rate * REPORT_SECONDS / self.road.cars

    def end(self, row: int) -> int:
        """Where a run ends that takes what is there: the last row, or an hour of the road from a row on."""
        return row + self.road.cars * _HOUR_OF_REPORTS if self.rows is None else self.rows

    def table(self, first: int, end: int) -> pa.Table:
        """The rows as a table."""
        return _table(self.road.reports(first, end), self.start)


class LinearRoadSource(DataSource):
    """Reads the simulated road."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._play = LinearRoad.of(dict(options))

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return FORMAT

    def schema(self) -> str:
        """The columns of a report."""
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """All rows, or an hour of them, as a table."""
        return _Table(self._play, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The rows at their rate."""
        return _Stream(self._play, schema)


class _Table(DataSourceReader):
    def __init__(self, play: LinearRoad, schema: StructType) -> None:
        self._play, self._schema = play, schema

    def partitions(self) -> Sequence[InputPartition]:
        return split(0, self._play.end(0), self._play.partition_rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._play, self._schema, partition)


class _Stream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, play: LinearRoad, schema: StructType) -> None:
        self._play, self._schema, self._pace = play, schema, Pace()
        self._all_there_is = False

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return default_limit(self._play.max_rows)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        first, seconds = self._pace.since(start["row"])
        due = self._play.end(first)
        if not self._all_there_is:
            played = first + int(self._play.rate * seconds)
            due = played if self._play.rows is None else min(played, due)
        return {"row": read_up_to(start["row"], due, limit)}

    def prepareForTriggerAvailableNow(self) -> None:
        self._all_there_is = True

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return split(start["row"], end["row"], self._play.partition_rows)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._play, self._schema, partition)

    def commit(self, end: dict[str, int]) -> None:
        if self._play.accidents:
            write_accidents(self._play, Path(self._play.accidents), self._play.road.second_of(end["row"]))


def write_accidents(play: LinearRoad, file: Path, before: int) -> None:
    """Add the accidents before a second of the road that the file does not have yet, one JSON object a line."""
    known = _last_accident(file)
    since = max((_micros(known[0]) - play.start) // 1_000_000, 0) if known else 0
    found = [_told(play, accident) for accident in _each(play.road.accidents(since, before))]
    fresh = [told for told in found if known is None or (told["start"], told["car_id"]) > known]
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as opened:
        opened.write("".join(json.dumps(told) + "\n" for told in fresh))


def _last_accident(file: Path) -> tuple[str, int] | None:
    """Start and car of the last accident in the file; what a process that died left of a line is cut off."""
    if not file.exists():
        return None
    with file.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(size - _TAIL, 0))
        content = opened.read()
    whole = content[: content.rfind(b"\n") + 1]
    os.truncate(file, size - len(content) + len(whole))
    lines = whole.splitlines()
    last = json.loads(lines[-1]) if lines else None
    return (last["start"], last["car_id"]) if last else None


def _each(trips: Trips) -> Iterator[Trips]:
    return (trips.take(np.array([number])) for number in range(trips.car.size))


def _told(play: LinearRoad, accident: Trips) -> dict[str, Any]:
    place = float(accident.place[0])
    return {
        "start": _iso(play.start + round(accident.event[0] * 1_000_000)),
        "end": _iso(play.start + round(accident.over[0] * 1_000_000)),
        "car_id": int(accident.car[0]),
        "exp_way": int(accident.way[0]),
        "dir": int(accident.direction[0]),
        "lane": int(accident.lane[0]),
        "x_pos": round(place if accident.direction[0] == 0 else ROAD_MILES - place, 3),
    }


def _iso(micros: int) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _micros(iso: str) -> int:
    return (datetime.fromisoformat(iso) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _table(reports: Reports, start: int) -> pa.Table:
    return pa.table(
        {
            "ts": pa.array(reports.second * 1_000_000 + start).cast(pa.timestamp("us", "UTC")),
            "car_id": reports.car,
            "speed": reports.speed,
            "exp_way": reports.way.astype(np.int32),
            "lane": reports.lane.astype(np.int32),
            "dir": reports.direction.astype(np.int32),
            "x_pos": reports.position,
        }
    )


def _read(play: LinearRoad, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if isinstance(partition, RowRange) and partition.start < partition.end:
        wanted = to_arrow_schema(schema, timezone="UTC")
        yield wanted_columns(play.table(partition.start, partition.end), wanted, f"source '{FORMAT}'")
