"""Temporal primitive events in the kernel: as the reference has them, whole and cut."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from estream.event.state import BEGINNING
from estream.event.temporal import instants
from estream.event.words import FOREVER
from estream.plan.model import Temporal
from estream.testing import WHOLE, Cuts, Row, run
from tests.reference.detection import detect as reference
from tests.reference.temporal import instants as reference_instants

SECOND = 1_000_000
HOUR = 3600 * SECOND
FAR = 253_402_300_799 * SECOND
"""The last second of the calendar."""


def ends(events: dict[str, Any], hours: list[float], cuts: Cuts = WHOLE) -> list[float]:
    """When E is detected, in hours, over an A at each of these hours."""
    rows = [Row("A", round(hour * HOUR), number) for number, hour in enumerate(hours)]
    return [one.end / HOUR for one in run(events, rows, ["E"], cuts=cuts)]


def expected(events: dict[str, Any], hours: list[float]) -> list[float]:
    """The same by the reference."""
    rows = [{"event": "A", "time": round(h * HOUR), "id": number, "attrs": {}} for number, h in enumerate(hours)]
    return [one["end"] / HOUR for one in reference(events, rows, ["E"])]


@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("*/30 1-2 * * *", "UTC"),
        ("0 2 * * THU", "Europe/Zurich"),
        ("0 0 3 * SUN", "UTC"),
        ("30 2 * * *", "Asia/Kolkata"),
    ],
)
@pytest.mark.parametrize("cuts", [WHOLE, Cuts(3, 1)], ids=str)
def test_cron_in_its_zone(cron: str, zone: str, cuts: Cuts) -> None:
    events = {"Tick": {"cron": cron, "timezone": zone}, "E": {"when": "Tick"}}
    hours = [0.1, 30.0, 31.5, 24.0 * 9]
    found = ends(events, hours, cuts)
    assert found == expected(events, hours)
    assert found


MARCH = ("2026-03-28T12:00", "2026-03-30T12:00")
OCTOBER = ("2026-10-24T12:00", "2026-10-26T12:00")


@pytest.mark.parametrize(
    ("cron", "span", "expected"),
    [
        # At 02:00 the clock in Zurich jumps to 03:00: 02:30 is an hour later.
        ("30 2 * * *", MARCH, ["29T01:30", "30T00:30"]),
        ("0 9 * * *", MARCH, ["29T07:00", "30T07:00"]),
        # With a * in minute or hour it is what the clock shows, and it never shows 02:30.
        ("30 1-3/1 * * *", MARCH, ["29T00:30", "29T01:30", "29T23:30", "30T00:30", "30T01:30"]),
        ("30 */2 29 * *", MARCH, ["28T23:30", *(f"29T{hour:02}:30" for hour in range(2, 22, 2))]),
        # At 03:00 the clock goes back to 02:00 and shows 02:30 twice.
        ("30 2 * * *", OCTOBER, ["25T00:30", "26T01:30"]),
        ("30 */2 25 * *", OCTOBER, ["24T22:30", "25T00:30", *(f"25T{hour:02}:30" for hour in range(1, 23, 2))]),
    ],
)
def test_cron_when_the_clock_changes(cron: str, span: tuple[str, str], expected: list[str]) -> None:
    begin, end = (round(datetime.fromisoformat(f"{one}Z").timestamp()) * SECOND for one in span)
    temporal = Temporal("Tick", cron=cron, timezone="Europe/Zurich")
    found = list(instants(temporal, begin, begin, end))
    assert [datetime.fromtimestamp(time // SECOND, UTC).strftime("%dT%H:%M") for time in found] == expected


@pytest.mark.parametrize("cron", ["30 2 * * *", "*/20 * * * *", "10 */2 * * *", "15 1,2 * * SUN"])
@pytest.mark.parametrize("zone", ["Europe/Zurich", "Australia/Lord_Howe"])
@pytest.mark.parametrize("day", ["2026-03-28", "2026-04-04", "2026-10-03", "2026-10-24"])
def test_cron_does_not_depend_on_where_the_input_is_cut(cron: str, zone: str, day: str) -> None:
    begin = round(datetime.fromisoformat(f"{day}T00:00Z").timestamp()) * SECOND
    temporal, end, length = Temporal("Tick", cron=cron, timezone=zone), begin + 48 * HOUR, 17 * 60 * SECOND
    cut = [
        time
        for since in range(begin, end, length)
        for time in instants(temporal, begin, since, min(since + length, end))
    ]
    assert cut == list(instants(temporal, begin, begin, end))
    assert cut == reference_instants({"cron": cron, "timezone": zone}, begin, end - 1)


@pytest.mark.parametrize("limit", [BEGINNING, -FAR, 0, 1])
def test_before_the_watermark_has_come_to_the_first_row_there_is_no_cron(limit: int) -> None:
    assert list(instants(Temporal("Tick", cron="* * * * *", timezone="Europe/Zurich"), 1, BEGINNING, limit)) == []


def test_cron_ends_before_the_calendar_does() -> None:
    cron = Temporal("Tick", cron="0 0 1 1 *", timezone="Pacific/Auckland")
    last = [datetime.fromtimestamp(time // SECOND, UTC).year for time in instants(cron, FAR - 900_000 * HOUR, 0, FAR)]
    assert last == [9897, 9898, 9899]
    assert list(instants(cron, FAR + 1, BEGINNING, FOREVER)) == []


def test_a_temporal_event_belongs_to_a_partition_that_begins_later() -> None:
    events = {"Beat": {"every": "10 s"}, "E": {"when": "Beat ; A", "partition_by": ["k"], "context": "chronicle"}}
    times = [("B", 1, 0), ("A", 12, 1), ("A", 13, 2), ("A", 14, 1)]
    rows = [Row(event, at * SECOND, number, {"k": key}) for number, (event, at, key) in enumerate(times)]
    for cuts in (WHOLE, Cuts(4, 3), Cuts(5, 4)):
        found = run(events, rows, ["E"], cuts=cuts)
        assert [(one.end // SECOND, [part.id for part in one.constituents]) for one in found] == [
            (12, [0, 1]),
            (13, [0, 2]),
        ]
