"""`estream conformance`: run vector files and say which cases do not give what they should."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from estream.content import read_content
from estream.errors import EStreamError, Place, Problem
from estream.testing import Cuts, Detection, Row, match, run

Vector = Mapping[str, Any]
Shown = dict[str, Any]
Found = list[Shown] | str
"""The detections of a case; a message where it gave an error."""
Finder = Callable[[Vector, Cuts], list[Shown]]
Host = Callable[[Sequence[Vector]], Iterable[Found]]
"""What runs vectors, and gives for each what it found."""
OPTIONS = ("context", "semantics", "partition_by", "mask")
LARGEST = 1 << 30
"""Bytes of a file of vectors."""
PRECISION = 1e-9
"""Numbers that are not integers are equal within this."""


class _Row(BaseModel):
    event: str
    time: int
    id: int
    attrs: dict[str, Any]


class _Detection(BaseModel):
    event: str
    start: int
    end: int
    ids: list[int]
    attrs: dict[str, Any]


class _Vector(BaseModel):
    name: str
    kind: str
    input: list[_Row]
    expected: list[_Detection]


class _Definition(BaseModel):
    when: str


class _EventVector(_Vector):
    events: dict[str, _Definition]
    observe: list[str]


class _PatternVector(_Vector):
    stream: str
    pattern: str
    define: dict[str, str]
    output: dict[str, str]
    partition_by: list[str]


_SHAPES: dict[str, type[_Vector]] = {"event": _EventVector, "pattern": _PatternVector}
"""By the kind of a vector, what it must have; what it has beside that is asked where it is used."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A case that gave something else."""

    file: str
    name: str
    expected: list[Shown]
    found: Found

    def __str__(self) -> str:
        """The case, with what was expected and what was found below it."""
        return f"{self.file}: {self.name}\n  expected {json.dumps(self.expected)}\n  found    {json.dumps(self.found)}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of vectors gave."""

    passed: int
    failures: tuple[Failure, ...]
    skipped: int
    """Cases of a kind that is not run."""

    def __str__(self) -> str:
        """Every failure, then `N passed, M failed`."""
        skipped = [f"{self.skipped} skipped: their kind is not one of {', '.join(FINDERS)}"] if self.skipped else []
        return "\n".join([*map(str, self.failures), *skipped, f"{self.passed} passed, {len(self.failures)} failed"])

    def to_json(self) -> str:
        """The same for programs."""
        failed = [
            {"file": one.file, "name": one.name, "expected": one.expected, "found": one.found} for one in self.failures
        ]
        return json.dumps({"passed": self.passed, "failed": failed, "skipped": self.skipped}, indent=2)


def vectors(path: Path) -> Iterator[Vector]:
    """The cases of a `.jsonl` file."""
    try:
        lines = read_content(path, LARGEST).decode().splitlines()
    except UnicodeDecodeError:
        raise EStreamError(f"cannot read {path}: it is no text in UTF-8") from None
    except ValueError as error:
        raise EStreamError(f"cannot read {path}: {error}") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _vector(line, Place(str(path), number, 1))


def _vector(line: str, place: Place) -> Vector:
    try:
        vector = json.loads(line)
    except json.JSONDecodeError as error:
        raise EStreamError([Problem(place, f"the line is not JSON: {error.msg}")]) from None
    if not isinstance(vector, dict):
        raise EStreamError([Problem(place, "the line is no JSON object")])
    try:
        _SHAPES.get(str(vector.get("kind")), _Vector).model_validate(vector, strict=True)
    except ValidationError as error:
        raise EStreamError([Problem(place, _told(one)) for one in error.errors()]) from None
    return dict(vector)


def _told(error: ErrorDetails) -> str:
    where = ".".join(map(str, error["loc"][:-1]))
    if error["type"] == "missing":
        return f"{where or 'the case'} has no '{error['loc'][-1]}'"
    return f"{'.'.join(map(str, error['loc']))}: {error['msg'][0].lower()}{error['msg'][1:]}"


def found_by(vector: Vector, cuts: Cuts, more: Mapping[str, Mapping[str, Any]] | None = None) -> list[Shown]:
    """What EStream detects for a vector of kind `event`, in the vectors' form and order.

    `more` are events beside those of the vector, as a CEQ file has them. The order is `event_time` unless it has one.
    """
    rows = [Row(one["event"], one["time"], one["id"], one["attrs"]) for one in vector["input"]]
    definitions = {**(more or {}), **{name: definition_of(one) for name, one in vector["events"].items()}}
    order = vector.get("order", "event_time")
    return [_shown(one) for one in run(definitions, rows, vector["observe"], order=order, cuts=cuts)]


def matched_by(vector: Vector, cuts: Cuts) -> list[Shown]:
    """What EStream gives for a vector of kind `pattern`, whose rows have their time as the attribute `ts` too."""
    rows = [
        Row(one["event"], one["time"], one["id"], {**one["attrs"], "ts": one["time"]})
        for one in vector["input"]
        if one["event"] == vector["stream"]
    ]
    options = {name: vector[name] for name in ("output", "partition_by")}
    found = match(vector["pattern"], define=vector["define"], rows=rows, cuts=cuts, **options)
    return [
        {"event": "M", "start": one.start, "end": one.end, "ids": list(one.rows), "attrs": one.attributes}
        for one in found
    ]


FINDERS: dict[str, Finder] = {"event": found_by, "pattern": matched_by}
"""By the kind of a vector, what gives its detections."""


def definition_of(vector: Vector) -> dict[str, Any]:
    """An event of a vector as a CEQ file has it."""
    options = {name: vector[name] for name in OPTIONS if vector.get(name)}
    within = {"within": f"{vector['within_us']} us"} if vector.get("within_us") is not None else {}
    return {"when": vector["when"], **options, **within}


def _shown(detection: Detection) -> Shown:
    attributes: dict[str, Any] = {}
    if detection.tick is not None:
        attributes["tick"] = detection.tick
    if detection.ticks is not None:
        attributes["ticks"] = list(detection.ticks)
    ids = [row.id for row in detection.constituents]
    return {"event": detection.event, "start": detection.start, "end": detection.end, "ids": ids, "attrs": attributes}


def in_process(cuts: Cuts) -> Host:
    """Runs vectors without Spark, one after the other, each input fed as `cuts` says."""

    def run_all(chosen: Sequence[Vector]) -> Iterator[Found]:
        for vector in chosen:
            try:
                yield FINDERS[vector["kind"]](vector, cuts)
            except EStreamError as error:
                yield str(error)

    return run_all


def run_files(paths: Iterable[Path], host: Host) -> Outcome:
    """Run every case of every file."""
    passed = skipped = 0
    failures = []
    for path in paths:
        every = list(vectors(path))
        chosen = [vector for vector in every if vector["kind"] in FINDERS]
        skipped += len(every) - len(chosen)
        for vector, found in zip(chosen, host(chosen), strict=True):
            if same(found, vector["expected"]):
                passed += 1
            else:
                failures.append(Failure(path.name, vector["name"], vector["expected"], found))
    return Outcome(passed, tuple(failures), skipped)


def same(found: Found, expected: list[Shown]) -> bool:
    """Whether all detections are there, and nothing else; the order does not matter."""
    if isinstance(found, str) or len(found) != len(expected):
        return False
    return all(map(_equal, sorted(found, key=_order), sorted(expected, key=_order)))


def _order(shown: Shown) -> str:
    # Attributes last and rounded: detections that differ in nothing else are told apart by them.
    rounded = {name: round(value, 6) if isinstance(value, float) else value for name, value in shown["attrs"].items()}
    return json.dumps([shown["end"], shown["start"], shown["ids"], shown["event"], rounded], sort_keys=True)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, float) or isinstance(other, float):
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        return numbers and (math.isclose(one, other, rel_tol=PRECISION, abs_tol=PRECISION) or one != one != other)
    return bool(one == other)
