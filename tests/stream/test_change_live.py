"""A run is changed in every way while it goes on; an oracle that knows each version says what it must find."""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from sqlalchemy import text

from estream.app import RunOptions, job_of, load
from estream.app_changes import Versions
from estream.history.changes import list_changes
from estream.history.database import Database
from estream.spec.override import Overrides
from estream.stream.change import Answer, Request
from estream.stream.change_live import Live, answered
from estream.stream.channel import Channel
from estream.stream.detected import to_lines
from estream.stream.runner import Job, Runner
from estream.stream.sink import Outcome, Take
from tests.reference.detection import detect

SECOND = 1_000_000
BEGIN = 1_772_323_200 * SECOND
EPOCH = 60
LONGEST = 200
COLUMNS = {"ts": "timestamp", "n": "bigint", "kind": "string", "k": "int", "g": "int", "v": "int"}
CHANGES = """\
event Both is new, rule OnBoth is new
event A is changed
rule OnSeq is changed
rule OnSeq is changed, rule More is new
event Seq is changed, rule More is gone
query High is new, query Triple is new, event H is new, event Full is new, event HB is new, event EFull is new,
rule OnHB is new, rule OnFull is new
stream Extra is new, query High is changed, event X is new, event Far is new, rule OnFar is new
stream Extra is changed, query Triple is changed, event Both is changed, event Far is changed
event B is changed, stream Extra is gone, query High is gone, query Triple is gone, event Both is gone, event H is gone,
event Full is gone, event HB is gone, event EFull is gone, event X is gone, event Far is gone, rule OnBoth is gone,
rule OnHB is gone, rule OnFull is gone, rule OnFar is gone"""
"""All that the test changes: streams, plain and windowed queries, masks, events of one and two stages, rules."""
Found = tuple[str, tuple[int, ...]]
"""An event and the seconds of the rows it is made of."""


def stream(channel: str) -> dict[str, Any]:
    return {"source": {"channel": channel}, "schema": COLUMNS, "time": "ts", "watermark": "1 s", "idle_after": "1 h"}


def rule(event: str, words: str = "seen") -> dict[str, Any]:
    return {"on": event, "actions": [{"log": words, "level": "debug"}]}


def base() -> dict[str, Any]:
    return {
        "version": 1,
        "name": "live",
        "settings": {"stream": {"trigger": "100 ms"}},
        "streams": {"Readings": stream("readings")},
        "queries": {},
        "events": {
            "A": {"on": "Readings", "mask": "kind = 'a'", "id": ["n"]},
            "B": {"on": "Readings", "mask": "kind = 'b'", "id": ["n"]},
            "C": {"on": "Readings", "mask": "kind = 'c'", "id": ["n"]},
            "Seq": {"when": "A ; B", "context": "chronicle", "partition_by": "k"},
        },
        "rules": {"OnSeq": rule("Seq")},
    }


def rows_of(epoch: int, number: int, kinds: str) -> list[dict[str, Any]]:
    """Rows of an epoch, and one at its end that raises nothing and lets time pass them."""
    rows = []
    for place in range(number + 1):
        second = epoch * EPOCH + (place * 4 if place < number else EPOCH - 5) + (0 if number > 6 else 1)
        kind = kinds[(place * 7 + epoch) % len(kinds)] if place < number else "z"
        rows.append({"ts": BEGIN + second * SECOND, "n": second, "kind": kind, "k": place % 2, "g": place % 3 % 2,
                     "v": (place * 7 + epoch * 3) % 10})  # fmt: skip
    return rows


@dataclass
class World:
    """The run, the file as it stands, and for each epoch the version that saw it."""

    folder: Path
    spark: SparkSession
    document: dict[str, Any] = field(default_factory=base)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    rows: dict[str, list[list[dict[str, Any]]]] = field(default_factory=lambda: {"Readings": [], "Extra": []})
    found: dict[str, Any] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.write()
        job = self.job_from(self.file, Overrides())
        self.versions = Versions(job, self.folder, self.file, self.job_from)
        self.live = Live(job, self.spark, self.start, self.taking)
        self.live.begin()

    @property
    def file(self) -> Path:
        return self.folder / "live.yaml"

    def write(self) -> None:
        self.file.write_text(json.dumps(self.document))

    def job_from(self, file: Path, overrides: Overrides) -> Job:
        return job_of(load(file, {}, self.folder, overrides), self.folder, {}, RunOptions())

    def start(self, job: Job, take: Take) -> Runner:
        def watch(outcome: Outcome) -> None:
            self.watermark = outcome.progress["watermark"] if outcome.progress else 0

        return Runner(job, self.spark, take, watch)

    @contextmanager
    def taking(self, job: Job) -> Iterator[Take]:
        def take(batch: int, detections: pa.Table) -> None:
            for each in (*takes, lambda number, table: self.keep(job, table)):
                each(batch, detections)

        with self.versions.takers(job) as takes:
            yield take

    def keep(self, job: Job, table: pa.Table) -> None:
        for line in to_lines(job.plan, table) if table.num_rows else ():
            self.found[line] = json.loads(line)

    def ask(self, request: Request) -> Answer:
        self.answers.append(answered(self.live, request, self.versions))
        return self.answers[-1]

    def apply(self) -> Answer:
        self.write()
        answer = self.ask(Request("apply", "ada", file=str(self.file)))
        assert answer.accepted, answer.told
        return answer

    def refused(self, request: Request, why: str) -> None:
        answer = self.ask(request)
        assert not answer.accepted
        assert why in " ".join(answer.told)
        self.write()

    def epoch(self) -> None:
        """Give an epoch of rows and wait until time has passed them."""
        epoch = len(self.epochs)
        self.epochs.append(copy.deepcopy(self.document))
        for name, number, kinds in (("Readings", 11, "abcab"), ("Extra", 5, "xxy")):
            if name in self.document["streams"]:
                self.rows[name].append(rows_of(epoch, number, kinds))
                Channel(self.folder / ".estream/channels" / name.lower()).append(table(self.rows[name][-1]))
            else:
                self.rows[name].append([])
        until = time.monotonic() + LONGEST
        while getattr(self, "watermark", 0) < BEGIN + reached(epoch) * SECOND:
            assert time.monotonic() < until
            assert not self.live.wait(0.05)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {"ts": pa.timestamp("us", "UTC"), "n": pa.int64(), "kind": pa.string()}
    schema = pa.schema([(name, kinds.get(name, pa.int32())) for name in COLUMNS])
    return pa.Table.from_pylist(rows, schema=schema)


MASKS = {
    "kind = 'a'": lambda row: row["kind"] == "a",
    "kind = 'a' AND v > 3": lambda row: row["kind"] == "a" and row["v"] > 3,
    "kind = 'b'": lambda row: row["kind"] == "b",
    "kind = 'b' AND v < 7": lambda row: row["kind"] == "b" and row["v"] < 7,
    "kind = 'c'": lambda row: row["kind"] == "c",
    "kind = 'x'": lambda row: row["kind"] == "x",
    "k = 1": lambda row: row["k"] == 1,
    "total > 0": lambda row: True,
}
"""What the masks of the test mean, in Python."""


def leaf_rows(world: World, epoch: int) -> list[dict[str, Any]]:
    """The primitive occurrences of an epoch, by the version that saw it; those of windows come by themselves."""
    document, made = world.epochs[epoch], []
    for name, event in document["events"].items():
        query = document["queries"].get(event.get("on"), {})
        if "on" not in event or "window" in query:
            continue
        source = "Readings" if query else event["on"]
        least = int(query["sql"].rpartition(">")[2]) if query else -1
        made += [
            occurrence(name, row) for row in world.rows[source][epoch] if MASKS[event["mask"]](row) and row["v"] > least
        ]
    return made


def occurrence(event: str, row: Mapping[str, Any]) -> dict[str, Any]:
    attributes = {name: row[name] for name in ("k", "g", "v") if name in row}
    return {"event": event, "time": row["ts"], "id": row["n"], "attrs": attributes}


def full_rows(world: World) -> list[dict[str, Any]]:
    """Every so-many-th row since a window by rows began: when it was full. One of another size began anew.

    What waits above the watermark of a change is a matter of the version that follows.
    """
    made: list[dict[str, Any]] = []
    size, seen, waiting = 0, 0, list[dict[str, Any]]()
    for epoch, (document, rows) in enumerate(zip(world.epochs, world.rows["Readings"], strict=True)):
        wanted = document["queries"].get("Triple", {"window": {"rows": 0}})["window"]["rows"]
        size, seen = wanted, seen if wanted == size else 0
        taken = [*waiting, *rows] if size else []
        passed = [row for row in taken if row["n"] < reached(epoch)]
        waiting = taken[len(passed) :]
        for row in passed:
            seen += 1
            made += [occurrence("Full", row)] if seen % size == 0 else []
    return made


def reached(epoch: int) -> int:
    """The watermark after an epoch, in seconds."""
    return (epoch + 1) * EPOCH - 6


def needed(document: Mapping[str, Any], event: str) -> dict[str, Any]:
    """The definitions that a composite event is made of, but for the masks of its leaves."""
    own = {event: document["events"][event]}
    for name, other in document["events"].items():
        if "when" in other and name != event and name in own[event]["when"].split():
            own |= needed(document, name)
    return own


def spans(world: World, event: str) -> Iterator[tuple[int, int]]:
    """The stretches of epochs in which a composite event was the same."""
    first = None
    for epoch, document in enumerate([*world.epochs, {"events": {}}]):
        now = needed(document, event) if event in document["events"] else None
        if first is not None and now != needed(world.epochs[first], event):
            yield first, epoch - 1
            first = None
        first = epoch if first is None and now is not None else first


def expected(world: World, event: str) -> set[Found]:
    """What must be found of a composite event in all the stretches of its life."""
    found: set[Found] = set()
    for first, last in spans(world, event):
        definitions = {name: definition(one) for name, one in needed(world.epochs[first], event).items()}
        rows = [row for epoch in range(first, last + 1) for row in leaf_rows(world, epoch)]
        rows += full_rows(world)
        rows = [row for row in rows if row["id"] < reached(last)]
        rows.append({"event": "Z", "time": BEGIN + reached(last) * SECOND, "id": 0, "attrs": {}})
        found |= {(event, tuple(one["ids"])) for one in detect(definitions, rows, [event], end_of_input=False)}
    return found


def definition(event: Mapping[str, Any]) -> dict[str, Any]:
    keys = event.get("partition_by", [])
    within = event.get("within")
    return {
        "when": event["when"],
        "context": event.get("context", "recent"),
        "semantics": "interval",
        "partition_by": [keys] if isinstance(keys, str) else keys,
        "within_us": int(within.split()[0]) * SECOND if within else None,
        "mask": None,
    }


def change_in_every_way(world: World) -> None:
    """Changes of every kind, an epoch of rows after each."""
    document, events, rules = world.document, world.document["events"], world.document["rules"]
    world.epoch()

    events["Both"], rules["OnBoth"] = {"when": "A and C"}, rule("Both")
    answer = world.apply()
    assert (answer.kept, answer.empty, answer.restarted) == (("Seq",), ("Both",), True)
    world.epoch()

    events["A"]["mask"] = "kind = 'a' AND v > 3"
    answer = world.ask(Request("mask", "ben", name="A", mask=events["A"]["mask"]))
    assert answer.kept == ("Seq", "Both"), answer.told
    assert answer.told[0] == "event A is changed"
    world.epoch()

    answer = world.ask(Request("rule", "ben", name="OnSeq", enabled=False))
    assert (answer.restarted, answer.told) == (False, ("rule OnSeq is changed",))
    world.refused(Request("mask", "ben", name="A", mask="nonsense > 3"), "<mask of A>:1:1: event 'A'")
    world.refused(Request("rule", "ben", name="OnSex", enabled=True), "there is no rule 'OnSex'")
    world.epoch()

    refuse_wrong_files(world)
    rules["OnSeq"], rules["More"] = rule("Seq", "seen again"), rule("Seq")
    assert not world.apply().restarted
    world.epoch()

    del rules["More"]
    events["Seq"]["within"] = "30 seconds"
    answer = world.apply()
    assert (answer.kept, answer.empty, answer.dropped) == (("Both",), ("Seq",), ("Seq",))
    world.epoch()

    document["queries"]["High"] = {"sql": "SELECT * FROM Readings WHERE v > 5"}
    document["queries"]["Triple"] = {"from": "Readings", "window": {"rows": 3, "slide": "batch"},
                                     "select": {"ts": "window.end", "n": "last(n)", "total": "sum(v)"}}  # fmt: skip
    events["H"] = {"on": "High", "mask": "k = 1", "id": ["n"]}
    events["Full"] = {"on": "Triple", "mask": "total > 0", "id": ["n"]}
    events["HB"], events["EFull"] = {"when": "H ; B", "context": "continuous"}, {"when": "Full"}
    rules["OnHB"], rules["OnFull"] = rule("HB"), rule("EFull")
    assert world.apply().begun == ("Triple",)
    world.epoch()

    document["queries"]["High"]["sql"] = "SELECT * FROM Readings WHERE v > 2"
    document["streams"]["Extra"] = stream("extra")
    events["X"] = {"on": "Extra", "mask": "kind = 'x'", "id": ["n"]}
    events["Far"], rules["OnFar"] = {"when": "Seq ; X", "context": "chronicle", "partition_by": "g"}, rule("Far")
    answer = world.apply()
    assert {"Seq", "Both", "HB"} <= {*answer.kept}
    world.epoch()

    document["queries"]["Triple"]["window"]["rows"] = 4
    document["streams"]["Extra"]["watermark"] = "2 s"
    events["Both"]["context"], events["Far"]["context"] = "chronicle", "recent"
    answer = world.apply()
    assert answer.begun == ("Triple",)
    assert "query Triple begins anew" in answer.told
    assert {"Seq", "HB"} <= {*answer.kept}
    assert {*answer.empty} == {"Both", "Far"}
    world.epoch()

    for event in ("X", "Far", "Both", "H", "HB", "Full", "EFull"):
        del events[event]
    for name in ("OnFar", "OnBoth", "OnHB", "OnFull"):
        del rules[name]
    del document["streams"]["Extra"], document["queries"]["High"], document["queries"]["Triple"]
    events["B"]["mask"] = "kind = 'b' AND v < 7"
    answer = world.apply()
    assert answer.kept == ("Seq",)
    world.epoch()


def refuse_wrong_files(world: World) -> None:
    """Files that are wrong, or that Spark could not go on with: the run is as it was."""
    right = copy.deepcopy(world.document)
    apply = Request("apply", "ada", file=str(world.file))
    (world.folder / "damaged").mkdir()
    (world.folder / "damaged" / "rows.parquet").write_text("no rows")
    damaged = stream("") | {"source": {"format": "parquet", "options": {"path": str(world.folder / "damaged")}}}
    absent = stream("") | {"source": {"format": "parquet", "options": {"path": str(world.folder / "absent")}}}
    windowed = "SELECT k, count(*) AS c, window.end AS ts FROM Readings GROUP BY k, window(ts, '10 seconds')"
    for change, why in (
        ({"events": {"Seq": {"when": "A ; Bee"}}}, "'Bee'"),
        ({"queries": {"W": {"sql": windowed}}, "events": {"OnW": {"on": "W"}, "WB": {"when": "OnW ; B"}},
          "rules": {"Wide": rule("WB")}}, "query 'W' is new, and Spark would have to keep state for it"),
        ({"streams": {"Readings": stream("elsewhere")}}, "stream 'Readings' has another source"),
        ({"name": "other"}, "the file is called other; what runs is live"),
        ({"streams": {"Damaged": damaged}, "events": {"D": {"on": "Damaged"}, "ED": {"when": "D"}},
          "rules": {"OnD": rule("ED")}}, "rows.parquet is not a Parquet file"),
        ({"streams": {"Absent": absent}, "events": {"D": {"on": "Absent"}, "ED": {"when": "D"}},
          "rules": {"OnD": rule("ED")}}, "Path does not exist"),
    ):  # fmt: skip
        wrong = {key: value | change.get(key, {}) if isinstance(value, dict) else change.get(key, value)
                 for key, value in right.items()}  # fmt: skip
        world.file.write_text(json.dumps(wrong))
        world.refused(apply, why)


def test_a_run_that_is_changed_in_every_way_finds_what_each_version_must_find(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(tmp_path, spark)
    try:
        change_in_every_way(world)
    finally:
        world.live.stop()
    seen = {(one["event"], tuple(map(second, one["constituents"]))) for one in world.found.values()}
    for event in ("Seq", "Both", "HB", "EFull", "Far"):
        wanted = expected(world, event)
        assert wanted
        assert {one for one in seen if one[0] == event} == wanted
    assert_recorded(world)


def second(constituent: Mapping[str, Any]) -> int:
    """When a row came, which no other row did."""
    moment = datetime.fromisoformat(constituent["time"])
    return round(moment.timestamp()) - BEGIN // SECOND


def assert_recorded(world: World) -> None:
    """The history knows every change that was accepted, and no rule fired while it was disabled."""
    database = Database(world.live.job.settings.history.url, world.folder)
    recorded = list_changes(database)[::-1]
    accepted = [answer for answer in world.answers if answer.accepted]
    assert [(one.batch, one.watermark, one.told) for one in recorded] == [
        (answer.batch, BEGIN + reached(epoch) * SECOND, answer.told) for epoch, answer in enumerate(accepted)
    ]
    changed = [line for answer in accepted for line in answer.told if line.endswith((" new", " changed", " gone"))]
    assert sorted(changed) == sorted(re.split(r",?\s*\n|, ", CHANGES))
    assert len(changed) == 40
    assert [one.by for one in recorded[:3]] == ["ada", "ben", "ben"]
    assert recorded[1].request == "mask A \"kind = 'a' AND v > 3\""
    asked = (
        "SELECT d.start AS start, d.end AS ended FROM firings f JOIN rules r ON f.rule = r.number "
        "JOIN detections d ON d.id = f.detection AND d.event = f.event WHERE r.name = 'OnSeq'"
    )
    with database.begin() as connection:
        ended = [(row.ended - BEGIN) // SECOND // EPOCH for row in connection.execute(text(asked))]
    database.close()
    assert 3 not in ended
    assert {2, 4} <= {*ended}
