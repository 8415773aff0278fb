"""Input that is not as it should be: nothing crashes, nothing is lost without being counted."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from estream.errors import EStreamError
from estream.testing import Row, detect, row, run
from tests.event.running import SECOND, Run, at, graph_of, ids

SEQUENCE = {"E": {"when": "A ; B", "context": "chronicle"}}
KEYED = {"E": {"when": "A ; B", "context": "chronicle", "partition_by": ["k"]}}


def test_a_row_waits_until_the_watermark_has_passed_it() -> None:
    running = Run(graph_of(SEQUENCE))
    assert ids(running.feed([at("B4", 2), at("A1", 1)], watermark=4)) == []
    assert ids(running.feed([], watermark=4.5)) == [[1, 2]]


def test_a_late_row_is_counted_and_handed_back() -> None:
    running = Run(graph_of(SEQUENCE))
    running.feed([at("B4", 2)], watermark=3)
    late = running.feed([at("A1", 1), at("A3", 3)], watermark=9)
    assert ids(late) == [[3, 2]]
    assert late.late.column("id").to_pylist() == [1]
    assert running.state.counts["late"] == 1


def test_a_row_that_comes_twice_is_one_and_counted() -> None:
    running = Run(graph_of({"E": {"when": "times(2, A)"}}))
    running.feed([at("A1", 1), at("A1", 1)], watermark=0)
    assert ids(running.feed([at("A1", 1), at("A2", 2)], watermark=9)) == [[1, 2]]
    assert running.state.counts["duplicate"] == 2


def test_of_rows_with_one_id_the_same_stays_whatever_order_they_come_in() -> None:
    first, second = at("A1", 1, v=7), at("A1", 1, v=8)
    kept = []
    for rows in ([first, second], [second, first]):
        found = Run(graph_of({"E": {"when": "A"}})).feed(rows, watermark=9).detections.to_pylist()
        kept.append([part["v"] for one in found for part in one["constituents"]])
    assert len(kept[0]) == 1
    assert kept[0] == kept[1]


def test_rows_without_time_id_or_event_are_counted() -> None:
    running = Run(graph_of({"E": {"when": "A"}}))
    batch = running.batch([at("A1", 1), at("A2", 2), at("A3", 3), at("A4", 4)])
    batch = batch.set_column(1, "time", pa.array([None, 2, 3, 4], pa.int64()))
    batch = batch.set_column(2, "id", pa.array([1, None, 3, 4], pa.int64()))
    batch = batch.set_column(0, "event", pa.array([0, 0, None, 0], pa.int64()))
    assert ids(running.feed(batch, watermark=9)) == [[4]]
    assert running.state.counts == {"null_time": 1, "null_id": 1, "null_event": 1, "late": 0}


def test_a_row_with_a_null_key_takes_no_part_and_is_counted() -> None:
    running = Run(graph_of(KEYED))
    assert ids(running.feed([at("A1", 1, k=None), at("A2", 2), at("B3", 3)], watermark=9)) == [[2, 3]]
    assert running.state.counts["null_key"] == 1


def test_a_key_of_the_wrong_type_is_cast_as_sql_does_or_null() -> None:
    running = Run(graph_of(KEYED))
    batch = running.batch([at("A1", 1), at("A2", 2), at("B3", 3)])
    place = batch.column_names.index("k")
    batch = batch.set_column(place, "k", pa.array(["many", "7", "7"]))
    assert ids(running.feed(batch, watermark=9)) == [[2, 3]]
    assert (running.state.counts["wrong_type"], running.state.counts["null_key"]) == (1, 1)


def test_a_batch_without_a_column_is_told() -> None:
    running = Run(graph_of(SEQUENCE))
    with pytest.raises(EStreamError, match="the batch has no column 'id'"):
        running.feed(running.batch([]).drop_columns(["id"]), watermark=1)


@pytest.mark.parametrize(
    ("mask", "value", "held"),
    [
        ("1 / A.v > 0", 0, False),
        ("not (1 / A.v > 0)", 0, False),
        ("A.v + 1 < A.v", 2**63 - 1, True),
        ("A.v > 1e300", math.nan, True),
        ("A.v = A.v", math.nan, True),
        ("A.v is null", None, True),
    ],
)
def test_masks_follow_sql(mask: str, value: float | None, held: bool) -> None:
    rows = [row("A1", 1, v=value)] if value is not None else [row("A1", 1, v=None), row("C1", 2, v=1)]
    assert bool(detect("A", events=rows, mask=f"{mask} and count(A) > 0")) is held


def test_nan_is_one_key_and_both_zeros_are_one() -> None:
    rows = [row("A1", 1, k=math.nan), row("A2", 2, k=-0.0), row("B3", 3, k=0.0), row("B4", 4, k=math.nan)]
    assert detect("A ; B", events=rows, context="chronicle", partition_by=["k"]) == ["A2 B3", "A1 B4"]


def test_text_takes_part_by_value_in_keys_and_masks() -> None:
    rows = [
        row("A1", 1, k="x", v="é"),
        row("A2", 2, k="y", v="e"),
        row("B3", 3, k="y", v="é"),
        row("B4", 4, k="x", v="é"),
    ]
    assert detect("A ; B", events=rows, partition_by=["k"]) == ["A2 B3", "A1 B4"]
    assert detect("A ; B", events=rows, context="unrestricted", mask="A.v = B.v") == ["A1 B3", "A1 B4"]
    assert detect("A ; B", events=rows, context="unrestricted", mask="A.v = 'e'") == ["A2 B3", "A2 B4"]


def test_in_the_order_of_arrival_every_row_is_an_epoch_and_time_never_goes_back() -> None:
    rows = [row("B5", 1), row("A3", 2), row("B4", 3), row("B6", 4)]
    found = run({"E": {"when": "A ; B", "context": "unrestricted"}}, rows, ["E"], order="arrival")
    assert [(one.start, one.end, [part.id for part in one.constituents]) for one in found] == [
        (5 * SECOND, 6 * SECOND, [2, 4])
    ]


def test_in_the_order_of_arrival_what_is_due_up_to_a_row_comes_first_in_every_partition() -> None:
    running = Run(graph_of({"E": {"when": "absent(A, B, 2 s)", "partition_by": ["k"]}}, "arrival"))
    running.feed([at("A1", 1, k=1)], watermark=0)
    assert ids(running.feed([at("B3", 2, k=2)], watermark=0)) == [[1]]
    assert ids(running.feed([at("B3", 3, k=1)], watermark=0)) == []


def test_after_the_end_of_input_deadlines_act_and_ticks_do_not() -> None:
    rows = [Row("A", SECOND, 1), Row("C", 4 * SECOND, 2)]
    assert [one.end for one in run({"E": {"when": "(A + 2 s) + 9 s"}}, rows, ["E"])] == [12 * SECOND]
    assert [one.end // SECOND for one in run({"E": {"when": "P(A, 1 s, B)"}}, rows, ["E"])] == [2, 3, 4]
