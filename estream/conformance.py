"""`estream conformance`: run vector files and say which cases do not give what they should."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from estream.errors import EStreamError
from estream.testing import Cuts, Detection, Row, run

Vector = Mapping[str, Any]
Shown = dict[str, Any]
OPTIONS = ("context", "semantics", "partition_by", "mask")


def vectors(path: Path) -> Iterator[Vector]:
    """The cases of a `.jsonl` file."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def found_by(vector: Vector, cuts: Cuts, more: Mapping[str, Mapping[str, Any]] | None = None) -> list[Shown]:
    """What EStream detects for a vector of kind `event`, in the vectors' form and order.

    `more` are events beside those of the vector, as a CEQ file has them.
    """
    rows = [Row(one["event"], one["time"], one["id"], one["attrs"]) for one in vector["input"]]
    definitions = {**(more or {}), **{name: _definition(one) for name, one in vector["events"].items()}}
    return [_shown(one) for one in run(definitions, rows, vector["observe"], cuts=cuts)]


def _definition(vector: Vector) -> dict[str, Any]:
    options = {name: vector[name] for name in OPTIONS if vector.get(name)}
    within = {"within": f"{vector['within_us']} us"} if vector.get("within_us") is not None else {}
    return {"when": vector["when"], **options, **within}


def _shown(detection: Detection) -> Shown:
    ticks = {"tick": detection.tick, "ticks": detection.ticks and list(detection.ticks)}
    attributes = {name: value for name, value in ticks.items() if value is not None}
    if detection.ticks == ():
        attributes["ticks"] = []
    ids = [row.id for row in detection.constituents]
    return {"event": detection.event, "start": detection.start, "end": detection.end, "ids": ids, "attrs": attributes}


def run_files(paths: list[Path], cuts: Cuts, say: Callable[[str], None]) -> int:
    """Run every case of kind `event`; ends with `N passed, M failed` and gives the number that failed."""
    passed = failed = 0
    for path in paths:
        for vector in vectors(path):
            if vector["kind"] != "event":
                continue
            try:
                found: list[Shown] | str = found_by(vector, cuts)
            except EStreamError as error:
                found = str(error)
            if same(found, vector["expected"]):
                passed += 1
            else:
                failed += 1
                say(f"{path.name}: {vector['name']}")
                say(f"  expected {json.dumps(vector['expected'])}")
                say(f"  found    {json.dumps(found)}")
    say(f"{passed} passed, {failed} failed")
    return failed


def same(found: list[Shown] | str, expected: list[Shown]) -> bool:
    """Whether all detections are there, and nothing else."""
    return not isinstance(found, str) and sorted(map(json.dumps, found)) == sorted(map(json.dumps, expected))
