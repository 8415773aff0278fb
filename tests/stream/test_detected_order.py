"""Detections come by end, event, start and then the ids of their constituents, whichever shard found them."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from estream.stream.detected import joined


class Found(NamedTuple):
    """A detection, by what it is put in order by."""

    end: int
    event: str
    start: int
    ids: tuple[int, ...]


few = st.integers(-2, 2)
found = st.builds(Found, few, st.sampled_from(["b", "a", "B", "ab"]), few, st.lists(few, max_size=4).map(tuple))


def table_of(detections: list[Found]) -> pa.Table:
    """Detections as a shard gives them: events by a dictionary of its own."""
    constituent = pa.struct({"id": pa.int64()})
    lists = [[{"id": number} for number in one.ids] for one in detections]
    return pa.table(
        {
            "event": pa.array([one.event for one in detections], pa.string()).dictionary_encode(),
            "start": pa.array([one.start for one in detections], pa.int64()),
            "end": pa.array([one.end for one in detections], pa.int64()),
            "constituents": pa.array(lists, pa.large_list(constituent)),
        }
    )


def found_in(table: pa.Table) -> list[Found]:
    """The detections of a table, as they stand."""
    return [
        Found(row["end"], row["event"], row["start"], tuple(one["id"] for one in row["constituents"]))
        for row in table.to_pylist()
    ]


@given(st.lists(st.lists(found, max_size=12), max_size=4))
def test_the_shards_do_not_matter(shards: list[list[Found]]) -> None:
    whole = joined(table_of(shard) for shard in shards)

    assert found_in(whole) == sorted(one for shard in shards for one in shard)


def test_many_of_one_time_are_told_apart_by_their_ids() -> None:
    detections = [Found(0, "e", 0, (number % 3, -number)) for number in range(50_000)]

    assert found_in(joined([table_of(detections)])) == sorted(detections)
