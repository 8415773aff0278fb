"""Conditions and templates: what they mean over detections with several occurrences, nulls and odd values."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from estream.rule.condition import holds
from estream.rule.detection import Detected, Detection, Occurrence
from estream.rule.layout import Attribute, Layout, in_order
from estream.rule.message import value_from_message, value_to_message
from estream.rule.row import table_of
from estream.rule.template import fill, fill_json
from estream.rule.values import constituents_from_json, constituents_to_json
from estream.spec.types import BIGINT, DOUBLE, STRING, TIMESTAMP, DataType
from tests.rule.desk import STREAM, load

EVENTS = "events:\n  A: {on: Rows}\n  B: {on: Rows}\n  All: {when: 'A*(A, B, A)', context: cumulative}\n"
LAYOUT = Layout(
    {event: (Attribute("n", "n", BIGINT), Attribute("x", "x", DOUBLE), Attribute("name", "name", STRING))
     for event in "AB"}, {("All", None): 0},
)  # fmt: skip


def detected(*parts: tuple[str, int | None, float | None], end: int = 10) -> Detected:
    made = (Occurrence(event, place, place, {"n": n, "x": x, "name": "é"}) for place, (event, n, x) in enumerate(parts))
    return Detected("All", None, 0, end, 1, tuple(made))


def asked(condition: str, *found: Detected) -> list[bool]:
    rule = f'rules:\n  r: {{on: All, condition: "{condition}", actions: [{{log: x}}]}}\n'
    expression = load(STREAM + EVENTS + rule)[0].rules["r"].condition
    assert expression is not None
    return holds(expression, LAYOUT, pa.concat_tables(table_of(LAYOUT, one) for one in found)).tolist()


@pytest.mark.parametrize(
    ("condition", "holds_for"),
    [
        ("B.n = 3", [True, False]),
        ("first(B.n) = 2 AND last(B.n) = 3", [True, False]),
        ("count(B) = 2", [True, False]),
        ("count(B) = 0", [False, True]),
        ("count(B.x) = 1", [True, False]),
        ("sum(B.n) = 5 AND min(B.n) = 2 AND max(B.n) = 3", [True, False]),
        ("avg(B.n) = 2.5", [True, False]),
        ("B.n IS NULL", [False, True]),
        ("A.n = 9", [True, True]),
        ("B.n > 0 OR B.n <= 0", [True, False]),
    ],
)
def test_a_name_is_the_last_occurrence_and_aggregates_see_all(condition: str, holds_for: list[bool]) -> None:
    several = detected(("A", 1, 1.0), ("B", 2, None), ("B", 3, 2.0), ("A", 9, 0.0))
    none = detected(("A", 1, 1.0), ("A", 9, 0.0))
    assert asked(condition, several, none) == holds_for


def test_nan_is_the_greatest_number_for_max() -> None:
    assert asked("max(B.x) > 1e300", detected(("A", 1, 1.0), ("B", 2, math.nan), ("B", 3, 2.0), ("A", 9, 0.0))) == [
        True
    ]


def test_detections_of_one_end_and_start_are_ordered_by_the_ids_of_their_constituents() -> None:
    later = detected(("A", 1, 1.0), ("A", 2, 1.0))
    earlier = Detected("All", None, 0, 10, 2, (Occurrence("A", -5, 0, {}), *later.constituents))
    table = pa.concat_tables(table_of(LAYOUT, one) for one in (later, earlier))
    assert in_order(LAYOUT, table).column("id").to_pylist() == [2, 1]


def test_templates_put_values_in_and_run_nothing() -> None:
    one = detected(("A", 1, 1.5), ("A", None, math.inf))
    assert fill("{A.n} {A.x} {A.name} {B.n} {{A.n}} {A.n.__class__}", one) == "null inf é null {A.n} {A.n.__class__}"
    assert fill_json('{"n": {A.n}, "text": "{A.name}", "deep": {"x": {A.x}}}', one) == (
        '{"n": null, "text": "é", "deep": {"x": "inf"}}'
    )


VALUES: dict[str, tuple[DataType, Any]] = {
    "whole": (BIGINT, 2**62),
    "real": (DOUBLE, -0.1),
    "odd": (DOUBLE, math.inf),
    "text": (STRING, 'é"\n'),
    "time": (TIMESTAMP, datetime(2026, 1, 2, 3, 4, 5, 6, UTC)),
    "day": (DataType("date"), date(2026, 1, 2)),
    "exact": (DataType("decimal", ("10", "2")), Decimal("1.50")),
    "bytes": (DataType("binary"), b"\x00\xff"),
    "nothing": (DOUBLE, None),
    "list": (DataType("array", element=TIMESTAMP), [datetime(2026, 1, 2, tzinfo=UTC)]),
}


def test_values_come_back_from_the_record_and_from_another_process_as_they_were() -> None:
    attributes = {name: value for name, (_, value) in VALUES.items()}
    layout = Layout({"A": tuple(Attribute(name, name, kind) for name, (kind, _) in VALUES.items())}, {})
    (back,) = constituents_from_json(constituents_to_json([Occurrence("A", 1, 2, attributes)]), layout)
    assert back == Occurrence("A", 1, 2, attributes)
    for value in attributes.values():
        assert value_from_message(value_to_message(value)) == value


def test_a_detection_gives_its_constituents_by_name_and_says_what_it_has() -> None:
    one = Detection(detected(("A", 1, 1.0), ("B", 2, None), ("B", 3, 2.0)), "r", "k")
    assert (one.A.n, one.B.n, one["B"].x) == (1, 3, 2.0)
    assert [each.n for each in one.all("B")] == [2, 3]
    assert one.end == datetime(1970, 1, 1, 0, 0, 0, 10, UTC)
    with pytest.raises(AttributeError, match="'C' is not in this detection of 'All', which has A, B"):
        _ = one.C
    with pytest.raises(AttributeError, match="'m' is not an attribute of event 'A', which has n, x, name"):
        _ = one.A.m
    with pytest.raises(RuntimeError, match="belongs to no running rule"):
        one.raise_event("Alarm")
