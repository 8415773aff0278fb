"""Texts and values that no database takes, callbacks that always hang: they become records, and all else goes on."""

from __future__ import annotations

import os
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from estream.history import present
from estream.history.database import Database
from estream.history.query import Filter, lines, whole
from estream.rule.detection import Detection
from estream.rule.failure import reason
from estream.scalar import Duration
from tests.rule.desk import STREAM, Desk, settings

TEXT = """
events:
  A: {on: Rows}
  B: {on: Rows}
  Pair: {when: A ; B, context: chronicle, partition_by: name}
rules:
  bad: {on: Pair, priority: 2, actions: [{log: "x"}]}
  good: {on: Pair, actions: [{log: "{A.name}"}]}
"""


def pairs(*names: str) -> list[tuple[str, float, dict[str, Any]]]:
    return [
        row
        for place, name in enumerate(names)
        for row in (("A", place, {"n": place, "name": name}), ("B", place + 0.5, {"n": place, "name": name}))
    ]


def found(database: Database) -> list[tuple[str, str, str | None]]:
    return sorted((one.rule, one.state, one.error) for one in lines(database, Filter()))


class Mute(Exception):
    """An error that cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("\udcff and \x00"), "ValueError: \\udcff and \\x00"),
        (Mute(), "Mute: no message"),
        (ValueError("a" * 10_000), "ValueError: " + "a" * 1988),
        (BaseExceptionGroup("two", [ValueError("x"), SystemExit(1)]), "BaseExceptionGroup: two (2 sub-exceptions)"),
    ],
)
def test_whatever_an_error_says_is_recorded(database: Database, error: BaseException, said: str) -> None:
    def fail(detection: Detection) -> None:
        raise error

    with Desk(TEXT, database, {"bad": [fail]}, settings(attempts=1)) as desk:
        desk.agenda.take(0, desk.detect(*pairs("a", "b")))
    assert found(database) == [("bad", "dead", said)] * 2 + [("good", "done", None)] * 2
    assert reason(error) == said


def test_what_is_shown_commands_no_terminal(database: Database) -> None:
    def fail(detection: Detection) -> None:
        raise ValueError("\x1b]0;owned\x07")

    with Desk(TEXT, database, {"bad": [fail]}, settings(attempts=1)) as desk:
        desk.agenda.take(0, desk.detect(*pairs("\x1b[2J\n7")))
    firings = lines(database, Filter())
    shown = [present.to_table(firings, 200)]
    shown += ["\n".join(present.to_text_whole(whole(database, one.number))) for one in firings]
    assert all("\x1b" not in text and "\x07" not in text for text in shown)
    assert "owned" in shown[0]
    assert len(shown[0].splitlines()) == 3


def test_partitions_of_any_text_are_recorded(database: Database) -> None:
    names = ("a\x00b", "a\\x00b", "\n", "ü\u2028", "x" * 5_000)
    with Desk(TEXT, database) as desk:
        desk.agenda.take(0, desk.detect(*pairs(*names)))
    assert [one[1] for one in found(database)] == ["done"] * 10
    assert len({one.partition for one in lines(database, Filter(rule="good"))}) == len(names)


def test_a_throttled_partition_may_have_a_very_long_name(database: Database) -> None:
    throttled = TEXT.replace("good: {on: Pair,", "good: {on: Pair, throttle: 1 h,")
    names = [start + "".join(map(str, range(3_000))) + end for start in "ab" for end in "cd"]
    for batch in range(2):
        with Desk(throttled, database) as desk:
            desk.agenda.take(batch, desk.detect(*((event, 10 * batch + at, row) for event, at, row in pairs(*names))))
    assert [one[1] for one in found(database) if one[0] == "good"] == ["done"] * 4 + ["throttled"] * 4


def test_a_column_that_has_another_type_now_keeps_no_file_from_starting(database: Database) -> None:
    seen: list[Any] = []
    with Desk(TEXT, database) as desk:
        desk.agenda.take(0, desk.detect(*pairs("soon")))
        with database.begin() as connection:
            connection.execute(text("UPDATE firings SET state = 'pending', step = 0 WHERE rule = 1"))
    changed = STREAM.replace("name: string", "name: timestamp")
    notes = {"bad": [lambda d: seen.append(d.A.name)]}
    with Desk(TEXT, database, notes, stream=changed):
        pass
    assert seen == ["soon"]


def test_a_callback_that_always_hangs_is_left_alone_and_loses_no_attempts(database: Database) -> None:
    gate = threading.Event()
    quick = settings(timeout=Duration.of("50 ms"), attempts=3, backoff=Duration.of("1 h"))
    with Desk(TEXT, database, {"bad": [lambda d: gate.wait(30)]}, quick) as desk:
        desk.agenda.take(0, desk.detect(*pairs(*(f"n{n}" for n in range(8)))))
        gate.set()
        assert list(desk.agenda.status().open_circuits) == ["python tests.history.test_poison:" + _name()]
    with database.begin() as connection:
        tried = connection.execute(text("SELECT attempts FROM firings WHERE rule = 1 ORDER BY number")).scalars().all()
    assert tried == [1] * 5 + [0] * 3


def _name() -> str:
    return "test_a_callback_that_always_hangs_is_left_alone_and_loses_no_attempts.<locals>.<lambda>"


def test_a_callback_that_raises_is_tried_for_every_detection(database: Database) -> None:
    calls: list[int] = []

    def fail(detection: Detection) -> None:
        calls.append(detection.A.n)
        raise ValueError("of this detection")

    with Desk(TEXT, database, {"bad": [fail]}, settings(attempts=1)) as desk:
        desk.agenda.take(0, desk.detect(*pairs(*(f"n{n}" for n in range(12)))))
        assert desk.agenda.status().open_circuits == {}
    assert calls == list(range(12))


def test_a_callback_that_forks_and_returns_twice_is_performed_once(tmp_path: Path) -> None:
    database, trace = Database(f"sqlite:///{tmp_path}/history.db"), tmp_path / "trace"

    def fork(detection: Detection) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: this process has threads
            child = os.fork()
        if child:
            os.waitpid(child, 0)

    def note(detection: Detection) -> None:
        with trace.open("a") as file:
            file.write(f"{detection.A.n}\n")

    with Desk(TEXT, database, {"bad": [fork, note]}) as desk:
        desk.agenda.take(0, desk.detect(*pairs("a", "b", "c")))
    assert trace.read_text().split() == ["0", "1", "2"]
    assert [one[1] for one in found(database)] == ["done"] * 6
    database.close()


def test_an_async_callback_that_blocks_keeps_no_other_one_from_running(tmp_path: Path) -> None:
    database, gate, seen = Database(f"sqlite:///{tmp_path}/history.db"), threading.Event(), []

    async def block(detection: Detection) -> None:
        gate.wait(30)

    async def note(detection: Detection) -> None:
        seen.append(detection.A.n)

    quick = settings(timeout=Duration.of("300 ms"), attempts=1)
    with Desk(TEXT, database, {"bad": [block], "good": [note]}, quick) as desk:
        desk.agenda.take(0, desk.detect(*pairs("a", "b")))
        gate.set()
    assert seen == [0, 1]
    assert [one[1] for one in found(database)] == ["dead", "dead", "done", "done"]
    database.close()
