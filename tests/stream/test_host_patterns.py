"""Patterns in the host stages, without Spark: shards, relays and restarts change nothing of what is matched."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from estream.testing import Row, plan_of, run
from tests.stream.test_host import found

SECOND = 1_000_000
EVENTS: dict[str, Any] = {
    "M": {
        "on": "Rows",
        "id": ["row_id"],
        "partition_by": ["k"],
        "within": "1 min",
        "pattern": ". up{1,2} down",
        "define": {"up": "v > last(v)", "down": "v < first(v)"},
        "output": {"place": "k % 3", "top": "max(v)", "all": "collect(v)"},
    },
    "E": {"when": "M ; M2", "context": "chronicle", "partition_by": {"M": ["place"], "M2": ["place"]}},
}
EVENTS["M2"] = {**EVENTS["M"], "pattern": ". down", "define": {"down": "v < last(v)"}}


def rows() -> list[Row]:
    chance = random.Random(7)
    return [Row("A", at * SECOND, at, {"k": chance.randrange(12), "v": chance.randrange(9)}) for at in range(1, 400)]


@pytest.mark.parametrize(("shards", "cuts", "restarts"), [(1, 1, False), (2, 4, True), (8, 3, False)])
def test_matches_and_what_is_made_of_them_are_the_same_in_shards_and_after_restarts(
    shards: int, cuts: int, restarts: bool
) -> None:
    given, observe = rows(), ["M", "E"]
    whole = run(EVENTS, given, observe)
    expected = [(one.event, one.start, one.end, [part.id for part in one.constituents]) for one in whole]
    assert {event for event, *_ in expected} == {"M", "E"}
    plan = plan_of(EVENTS, given, observe)
    fed = [replace(row, event=f"{name} rows") for row in given for name in ("M", "M2")]
    sharded = found(plan, fed, shards, cuts, restarts)
    detected = [(one["event"], one["start"], one["end"], one["ids"]) for one in sharded]
    assert sorted(detected) == sorted(expected)
