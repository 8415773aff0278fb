"""Copies of what is shared detect the same as the contract asks, where a partitioning would feed itself."""

from __future__ import annotations

import random
from typing import Any

import pytest

from estream.conformance import found_by, same
from estream.testing import WHOLE
from tests.reference.detection import detect


def event(when: str, key: str, context: str) -> dict[str, Any]:
    settings = {"semantics": "interval", "within_us": None, "mask": None}
    return {"when": when, "context": context, "partition_by": [key], **settings}


def rows(seed: int) -> list[dict[str, Any]]:
    """Two rows at each second, with keys of which some agree."""
    pick = random.Random(seed)
    return [
        {
            "event": pick.choice("ABCD"),
            "time": number // 2 * 1_000_000,
            "id": number,
            "attrs": {"k": pick.randint(1, 2), "v": pick.randint(1, 2)},
        }
        for number in range(2, 60)
    ]


@pytest.mark.parametrize("context", ["unrestricted", "recent", "chronicle", "continuous", "cumulative"])
def test_a_knot_of_partitions_detects_what_the_reference_does(context: str) -> None:
    events = {
        "X1": event("A ; B", "k", "chronicle"),
        "X2": event("X1 ; C", "v", "continuous"),
        "E1": event("X2 and (X1 ; D)", "k", context),
    }
    observed = ["E1", "X1", "X2"]
    for seed in range(3):
        vector = {"name": "knot", "kind": "event", "events": events, "observe": observed, "input": rows(seed)}
        expected = detect(events, vector["input"], observed)
        assert any(one["event"] == "E1" for one in expected)
        assert same(found_by(vector, WHOLE), expected)
