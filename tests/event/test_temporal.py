"""Temporal primitive events in the kernel: as the reference has them, whole and cut."""

from __future__ import annotations

from typing import Any

import pytest

from estream.testing import WHOLE, Cuts, Row, run
from tests.reference.detection import detect as reference

SECOND = 1_000_000
HOUR = 3600 * SECOND


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
