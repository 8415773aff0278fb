"""Batches of a pattern that stands alone: what they may look like changes nothing of what is matched."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from estream.event.pattern import compile_pattern
from estream.event.pattern_step import batch_schema, begin, load, save, step
from estream.testing import Row, plan_of

EVENT: dict[str, Any] = {
    "on": "Rows",
    "id": ["row_id"],
    "partition_by": ["k"],
    "within": "1 min",
    "pattern": ". same+ other",
    "define": {"same": "tag = last(tag)", "other": "upper(tag) = 'B'"},
    "output": {"k": "k", "tag": "first(tag)", "tags": "collect(tag)"},
}
WORDS = ["xa", "yb", "xa", "xb", "yb", "xa", "ya", "zb", "xa", "zb", "xb", "zb"]


def matches(*encoded: bool) -> list[dict[str, Any]]:
    """The matches over batches of four rows, with texts encoded or plain; one row of each waits for the next batch."""
    rows = [Row("A", at, at, {"k": word[0], "tag": word[1]}) for at, word in enumerate(WORDS)]
    matcher = compile_pattern(plan_of({"M": EVENT}, rows, ["M"]).patterns[0], with_rows=True)
    state, found = begin(matcher), []
    for number, is_encoded in enumerate(encoded):
        given = rows[4 * number : 4 * number + 4]
        columns: dict[str, list[Any]] = {
            "event": [0] * 4,
            "time": [row.time for row in given],
            "id": [row.id for row in given],
            **{name: [row.attributes[name] for row in given] for name in ("k", "tag")},
        }
        batch = pa.table(columns).select(batch_schema(matcher).names)
        for name in ("k", "tag") if is_encoded else ():
            place = batch.column_names.index(name)
            batch = batch.set_column(place, name, batch.column(name).dictionary_encode())
        found += step(matcher, state, batch, 4 * number + 3).detections.to_pylist()
        state = load(matcher, save(matcher, state)) if number == 1 else state
    return found + step(matcher, state, batch.slice(0, 0), 0, end_of_input=True).detections.to_pylist()


def test_texts_may_come_dictionary_encoded_in_some_batches_and_plain_in_others() -> None:
    plain = matches(False, False, False)
    assert [one["rows"] for one in plain] == [[0, 2, 3], [5, 8, 10], [7, 9, 11]]
    assert [one["output"]["tags"] for one in plain] == [["a", "a", "b"], ["a", "a", "b"], ["b", "b", "b"]]
    for encoded in ((True, True, True), (True, False, True), (False, True, False)):
        assert matches(*encoded) == plain
