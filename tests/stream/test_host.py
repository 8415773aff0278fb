"""The host stages, without Spark: routes, shards, relays and chunks change nothing of what is detected."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from estream.conformance import vectors
from estream.plan.model import Plan
from estream.stream.detected import joined
from estream.stream.host_state import forget
from estream.stream.pack import Packed
from estream.stream.shard import spark_keys
from estream.testing import Row, plan_of
from tests.stream.sharded import MemoryChunks, Sharded

VECTORS = Path(__file__).parent.parent / "conformance"
DELAY = 10_000_000
"""Of the stream in `estream.testing`, which says nothing else."""


def mark(rows: Sequence[Row], shards: int) -> list[Packed]:
    """The mark of a batch, for every shard; later rows are never older than its watermark."""
    if not rows:
        return []
    facts = {"rows": len(rows), "least": min(row.time for row in rows), "greatest": max(row.time for row in rows)}
    return [Packed(key, "mark", "Rows", json.dumps(facts).encode()) for key in spark_keys(shards)]


def found(plan: Plan, rows: Sequence[Row], shards: int, cuts: int, restarts: bool) -> list[dict[str, Any]]:
    """The detections, in the vectors' form."""
    chunks: dict[tuple[int, int], MemoryChunks] = {}
    run = uuid.uuid4().hex
    tables = []
    pieces = [rows[len(rows) * cut // cuts : len(rows) * (cut + 1) // cuts] for cut in range(cuts)]
    for piece in pieces:
        run = uuid.uuid4().hex if restarts else run
        forget(run)
        tables += Sharded(plan, shards, run, chunks).take(piece, mark(piece, shards))
    tables += Sharded(plan, shards, run, chunks).take([], [], end=max((row.time for row in rows), default=0))
    return [_shown(row) for row in joined(tables).to_pylist()]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    ticks = {name: row[name] for name in ("tick", "ticks") if row.get(name) is not None}
    ids = [one["id"] for one in row["constituents"]]
    return {"event": row["event"], "start": row["start"], "end": row["end"], "ids": ids, "attrs": ticks}


def cases(name: str) -> Iterator[tuple[str, Plan, list[Row], list[dict[str, Any]]]]:
    """Plans, rows and what is expected of the vectors of a file."""
    for vector in vectors(VECTORS / name):
        rows = [Row(one["event"], one["time"], one["id"], one["attrs"]) for one in vector["input"]]
        definitions = {name: definition(one) for name, one in vector["events"].items()}
        yield vector["name"], plan_of(definitions, rows, vector["observe"]), rows, vector["expected"]


def definition(vector: dict[str, Any]) -> dict[str, Any]:
    """An event of a vector as a CEQ file has it."""
    options = {name: vector[name] for name in ("context", "semantics", "partition_by", "mask") if vector.get(name)}
    within = {"within": f"{vector['within_us']} us"} if vector.get("within_us") is not None else {}
    return {"when": vector["when"], **options, **within}


def ordered(detections: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True) for one in detections)


@pytest.mark.parametrize(("shards", "cuts", "restarts"), [(1, 1, False), (2, 3, True), (8, 2, False)])
def test_vectors_with_named_events_give_the_same_in_shards_and_after_restarts(
    shards: int, cuts: int, restarts: bool
) -> None:
    wrong = [
        name
        for name, plan, rows, expected in cases("events_nested.jsonl")
        if ordered(found(plan, rows, shards, cuts, restarts)) != ordered(expected)
    ]
    assert wrong == []


def test_a_batch_writes_only_what_changed_and_chunks_stay_small() -> None:
    rows = [Row("A", 1_000_000 * second, second, {"k": second}) for second in range(1, 3_000)]
    plan = plan_of({"E": {"when": "A ; B", "partition_by": ["k"], "context": "chronicle"}}, rows, ["E"])
    chunks: dict[tuple[int, int], MemoryChunks] = {}
    run = uuid.uuid4().hex
    host = Sharded(plan, 1, run, chunks)
    host.take(rows, mark(rows, 1))
    (kept,) = (one for (stage, _), one in chunks.items() if stage == 0)
    whole = sum(map(len, kept.values.values()))
    kept.written.clear()
    later = [Row("B", 3_000_000_000, 1, {"k": 5})]
    host.take(later, mark(later, 1))
    assert sum(len(kept.values[name]) for name in kept.written) < whole / 2
    assert max(map(len, kept.values.values())) <= 1 << 20


def test_a_changed_plan_keeps_what_waits_at_nodes_that_are_still_there() -> None:
    first, second = [Row("A", 1_000_000, 1, {"k": 1})], [Row("B", 60_000_000, 2, {"k": 1})]
    every = [*first, *second, Row("C", 0, 3, {"k": 1})]
    kept = {"when": "A ; B", "partition_by": ["k"]}
    chunks: dict[tuple[int, int], MemoryChunks] = {}
    Sharded(plan_of({"E": kept}, every, ["E"]), 2, "one", chunks).take(first, mark(first, 2))
    changed = plan_of({"E": kept, "F": {"when": "B ; C"}}, every, ["E", "F"])
    host = Sharded(changed, 2, "two", chunks)
    tables = host.take(second, mark(second, 2)) + host.take([], [], end=60_000_000)
    assert [(row["event"], [one["id"] for one in row["constituents"]]) for row in joined(tables).to_pylist()] == [
        ("E", [1, 2])
    ]
