"""The reference gives what the conformance vectors expect, and what the contract says where they are silent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reference.detection import detect
from tests.reference.patterns import match

VECTORS = Path(__file__).parent.parent / "conformance"
SECOND = 1_000_000


def vectors(name: str) -> Iterator[Any]:
    for line in (VECTORS / f"{name}.jsonl").read_text().splitlines():
        case = json.loads(line)
        yield pytest.param(case, id=case["name"])


def approximately(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With attributes that are equal within 1e-9."""
    return [one | {"attrs": {name: close(value) for name, value in one["attrs"].items()}} for one in found]


def close(value: Any) -> Any:
    return pytest.approx(value, abs=1e-9) if isinstance(value, float) else value


def full_order(one: dict[str, Any]) -> str:
    """A total order: where end, start, ids and event are equal the order of the vectors does not matter."""
    return json.dumps([one["end"], one["start"], one["ids"], one["event"], one["attrs"]], sort_keys=True)


@pytest.mark.parametrize("case", [*vectors("events_basic"), *vectors("events_nested")])
def test_events(case: dict[str, Any]) -> None:
    found = detect(case["events"], case["input"], case["observe"])
    assert sorted(found, key=full_order) == sorted(case["expected"], key=full_order)


@pytest.mark.parametrize("case", [*vectors("patterns")])
def test_patterns(case: dict[str, Any]) -> None:
    assert match(case) == approximately(case["expected"])


def rows(text: str) -> list[dict[str, Any]]:
    """`A1 B3:k=2` is an A at 1 s and a B at 3 s whose k is 2; ids count from 1, k is 1 unless given."""
    found = []
    for number, word in enumerate(text.split(), 1):
        head, _, given = word.partition(":")
        attrs = {"k": 1, "v": 0} | {name: int(value) for name, _, value in [given.partition("=")] if name}
        found.append({"event": head[0], "time": int(head[1:]) * SECOND, "id": number, "attrs": attrs})
    return found


def seconds(events: dict[str, Any], text: str, **options: bool) -> list[tuple[int, list[int]]]:
    """The end, in seconds, and the ids of each detection of E."""
    return [(one["end"] // SECOND, one["ids"]) for one in detect(events, rows(text), ["E"], **options)]


def test_end_of_input_lets_timers_act_that_are_due_later() -> None:
    events = {"E": {"when": "A + 5 s"}}
    assert seconds(events, "A1 B2") == [(6, [1])]
    assert seconds(events, "A1 B2", end_of_input=False) == []


def test_at_occurs_once_and_not_after_the_end() -> None:
    events: dict[str, Any] = {"Noon": {"at": 3 * SECOND}, "E": {"when": "Noon ; A", "context": "continuous"}}
    assert seconds(events, "A1 A2 A3 A4 A5") == [(4, [0, 4])]
    assert seconds(events, "A1 A2") == []


def test_every_begins_after_the_first_row_and_ends_with_the_last() -> None:
    events: dict[str, Any] = {"Beat": {"every": 2 * SECOND}, "E": {"when": "Beat"}}
    assert seconds(events, "A2 B7") == [(4, [0]), (6, [0])]
    assert seconds(events, "A1 B6") == [(2, [0]), (4, [0]), (6, [0])]


def test_a_temporal_event_belongs_to_every_partition_also_to_one_that_begins_later() -> None:
    events: dict[str, Any] = {
        "Beat": {"every": 10 * SECOND},
        "E": {"when": "Beat ; A", "partition_by": ["k"], "context": "chronicle"},
    }
    assert seconds(events, "B1 A12:k=1 A13:k=2 A14:k=1") == [(12, [0, 2]), (13, [0, 3])]


def test_cron_follows_the_wall_clock_of_its_zone() -> None:
    utc: dict[str, Any] = {"Tick": {"cron": "*/30 1-2 * * *"}, "E": {"when": "Tick"}}
    hours = [(end / 3600) for end, _ in seconds(utc, f"A0 A{6 * 3600}")]
    assert hours == [1, 1.5, 2, 2.5]
    zurich = {"Tick": {"cron": "0 2 * * THU", "timezone": "Europe/Zurich"}, "E": {"when": "Tick"}}
    assert seconds(zurich, f"A0 A{6 * 3600}") == [(3600, [0])]


def test_cron_admits_either_day_when_both_are_given() -> None:
    day = 24 * 3600
    events: dict[str, Any] = {"Tick": {"cron": "0 0 3 * SUN"}, "E": {"when": "Tick"}}
    # 1970-01-01 was a Thursday: the 3rd is a Saturday, the 4th a Sunday.
    assert [end // day for end, _ in seconds(events, f"A0 A{8 * day}")] == [2, 3]


def test_a_repartitioned_event_goes_by_its_last_constituent_that_has_a_key() -> None:
    events: dict[str, Any] = {
        "Beat": {"every": 10 * SECOND},
        "X": {"when": "A ; Beat"},
        "E": {"when": "X ; C", "partition_by": ["k"]},
    }
    assert seconds(events, "A5:k=2 C12:k=1 C13:k=2") == [(13, [1, 0, 3])]


def test_a_leaf_in_both_operands_makes_a_conjunct_one_of_the_pair() -> None:
    events: dict[str, Any] = {
        "E": {"when": "A ; (A ; B)", "context": "unrestricted", "semantics": "point", "mask": "A.v > 3"}
    }
    assert seconds(events, "A1:v=1 A2:v=5 B3") == [(3, [1, 2, 3]), (3, [2, 2, 3])]


def test_a_conjunct_without_leaves_is_asked_at_the_top() -> None:
    assert seconds({"E": {"when": "A ; B", "mask": "1 = 2"}}, "A1 B2") == []
    assert seconds({"E": {"when": "A ; B", "mask": "1 = 1"}}, "A1 B2") == [(2, [1, 2])]


def test_parentheses_around_an_and_do_not_matter() -> None:
    events: dict[str, Any] = {"E": {"when": "A ; B", "mask": "(A.v > 3 and (B.v > 3))"}}
    assert seconds(events, "A1:v=4 A2:v=0 B3:v=0 B4:v=4") == [(4, [1, 4])]


def test_division_by_zero_is_null_and_integers_overflow() -> None:
    assert seconds({"E": {"when": "A", "mask": "not (1 / A.v > 0)"}}, "A1:v=0") == []
    assert seconds({"E": {"when": "A", "mask": "A.v + 1 < A.v"}}, f"A1:v={2**63 - 1}") == [(1, [1])]


def test_rows_with_the_same_time_and_id_are_one() -> None:
    twice = rows("A1 B2") * 2
    assert len(detect({"E": {"when": "A ; B", "context": "unrestricted"}}, twice, ["E"])) == 1
