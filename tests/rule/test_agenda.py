"""Order, coupling, priority, throttling, retries: what the contract says of rules, on a real history."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from estream.history.database import Database
from estream.rule.detection import Detection
from estream.scalar import Duration
from tests.rule.desk import Desk, settings

EVENTS = """
events:
  A: {on: Rows}
  B: {on: Rows}
  Pair: {when: A ; B, context: chronicle, partition_by: n}
"""


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(f"sqlite:///{tmp_path}/history.db")


class Journal:
    """Who ran, in which order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, word: str) -> Callable[[Detection], None]:
        return lambda detection: self.lines.append(f"{word}{detection.constituents[-1].n}")


def rules(*lines: str) -> str:
    return EVENTS + "rules:\n" + "\n".join(f"  {line}" for line in lines)


def rule(name: str, on: str = "A", more: str = "") -> str:
    return f'{name}: {{on: {on}, actions: [{{log: "{name}"}}]{", " if more else ""}{more}}}'


def states(database: Database) -> dict[str, int]:
    with database.begin() as connection:
        rows = connection.execute(text("SELECT state, count(*) AS number FROM firings GROUP BY state"))
        return {row.state: row.number for row in rows}


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    gate = threading.Event()
    for _ in range(1000):
        if is_so():
            return
        gate.wait(0.01)
    raise AssertionError("it did not come about")


def a(n: int, second: float | None = None, **more: Any) -> tuple[str, float, dict[str, Any]]:
    return "A", n if second is None else second, {"n": n, **more}


def test_detections_come_by_end_and_rules_by_falling_priority(database: Database) -> None:
    journal = Journal()
    text_ = rules(rule("low"), rule("high", more="priority: 10"))
    with Desk(text_, database, {"low": [journal.note("low")], "high": [journal.note("high")]}) as desk:
        desk.agenda.take(0, desk.detect(a(2), a(1)))
    assert journal.lines == ["high1", "low1", "high2", "low2"]


def test_deferred_rules_run_after_all_immediate_ones_by_priority(database: Database) -> None:
    journal = Journal()
    text_ = rules(
        rule("later", more="coupling: deferred"), rule("first", more="coupling: deferred, priority: 5"), rule("now")
    )
    notes = {name: [journal.note(name)] for name in ("later", "first", "now")}
    with Desk(text_, database, notes) as desk:
        desk.agenda.take(0, desk.detect(a(1), a(2)))
    assert journal.lines == ["now1", "now2", "first1", "first2", "later1", "later2"]


def test_equal_priorities_run_together(database: Database) -> None:
    meeting = threading.Barrier(2, timeout=20)

    def meet(detection: Detection) -> None:
        meeting.wait()

    with Desk(rules(rule("one"), rule("two")), database, {"one": [meet], "two": [meet]}) as desk:
        desk.agenda.take(0, desk.detect(a(1)))
    assert states(database) == {"done": 2}


def test_the_stream_does_not_wait_for_detached_rules(database: Database) -> None:
    journal, gate = Journal(), threading.Event()

    def slow(detection: Detection) -> None:
        gate.wait(20)
        journal.lines.append("slow")

    text_ = rules(rule("slow", more="coupling: detached, priority: 9"), rule("quick"))
    with Desk(text_, database, {"slow": [slow], "quick": [journal.note("quick")]}) as desk:
        desk.agenda.take(0, desk.detect(a(1)))
        assert journal.lines == ["quick1"]
        gate.set()
        until(lambda: states(database) == {"done": 2})


def test_a_full_queue_of_detached_firings_holds_the_stream_and_shows(database: Database) -> None:
    gate = threading.Event()
    text_ = rules(rule("slow", more="coupling: detached"))
    few = settings(queue=2, workers=1)
    with Desk(text_, database, {"slow": [lambda d: gate.wait(20)]}, few) as desk:
        taking = threading.Thread(target=desk.agenda.take, args=(0, desk.detect(*(a(n) for n in range(8)))))
        taking.start()
        until(lambda: desk.agenda.status().is_full)
        assert desk.agenda.status().detached == 2
        gate.set()
        taking.join(20)
        until(lambda: states(database) == {"done": 8})


def test_a_repeated_micro_batch_changes_nothing(database: Database) -> None:
    journal = Journal()
    with Desk(rules(rule("r")), database, {"r": [journal.note("r")]}) as desk:
        batch = desk.detect(a(1), a(2))
        assert desk.agenda.take(7, batch).new == 2
        assert desk.agenda.take(7, batch).new == 0
    assert journal.lines == ["r1", "r2"]
    assert states(database) == {"done": 2}


def test_an_edited_rule_fires_nothing_twice(database: Database) -> None:
    journal = Journal()
    for more in ("priority: 1", "priority: 2"):
        with Desk(rules(rule("r", more=more)), database, {"r": [journal.note("r")]}) as desk:
            desk.agenda.take(0, desk.detect(a(1)))
    assert journal.lines == ["r1"]
    with database.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM versions")).scalar() == 2


def test_a_condition_is_asked_of_the_detection_and_what_fails_it_is_recorded(database: Database) -> None:
    journal = Journal()
    text_ = rules(rule("r", "Pair", 'condition: "B.x - A.x > 1 AND count(A) = 1"'))
    with Desk(text_, database, {"r": [journal.note("r")]}) as desk:
        rows = [("A", 1, {"n": 1, "x": 1.0}), ("B", 2, {"n": 1, "x": 3.0}), ("A", 3, {"n": 2, "x": 1.0}),
                ("B", 4, {"n": 2, "x": 1.5}), ("A", 5, {"n": 3, "x": 1.0}), ("B", 6, {"n": 3, "x": None})]  # fmt: skip
        desk.agenda.take(0, desk.detect(*rows))
    assert journal.lines == ["r1"]
    assert states(database) == {"done": 1, "suppressed": 2}


def test_a_throttle_lets_one_firing_per_partition_and_time_through_even_after_a_restart(database: Database) -> None:
    journal = Journal()
    text_ = rules(rule("r", "Pair", "throttle: 10 s"))

    def pair(n: int, second: float) -> list[tuple[str, float, dict[str, Any]]]:
        return [("A", second - 0.5, {"n": n}), ("B", second, {"n": n})]

    for batch, rows in enumerate([[*pair(1, 1), *pair(1, 5), *pair(2, 5)], [*pair(1, 10), *pair(1, 11)]]):
        with Desk(text_, database, {"r": [journal.note("r")]}) as desk:
            desk.agenda.take(batch, desk.detect(*rows))
    assert journal.lines == ["r1", "r2", "r1"]
    assert states(database) == {"done": 3, "throttled": 2}


def test_what_fails_is_tried_again_off_line_and_others_do_not_wait(database: Database) -> None:
    journal = Journal()

    def flaky(detection: Detection) -> None:
        journal.lines.append("flaky")
        if journal.lines.count("flaky") < 3:
            raise ValueError("not yet")

    text_ = rules(rule("flaky", more="priority: 5"), rule("calm"))
    with Desk(text_, database, {"flaky": [flaky], "calm": [journal.note("calm")]}) as desk:
        desk.agenda.take(0, desk.detect(a(1)))
        assert journal.lines[:2] == ["flaky", "calm1"]
        until(lambda: states(database) == {"done": 2})
    with database.begin() as connection:
        tried = connection.execute(text("SELECT number, error FROM attempts WHERE rule = 1 ORDER BY number")).all()
    assert [(number, error) for number, error in tried if error] == [
        (1, "ValueError: not yet"), (2, "ValueError: not yet")]  # fmt: skip


def test_after_its_attempts_a_firing_is_a_dead_letter(database: Database) -> None:
    def fail(detection: Detection) -> None:
        raise RuntimeError("no")

    text_ = rules(rule("r", more="retry: {attempts: 2, backoff: 1 ms}"))
    with Desk(text_, database, {"r": [fail]}) as desk:
        desk.agenda.take(0, desk.detect(a(1)))
        until(lambda: states(database) == {"dead": 1})
    with database.begin() as connection:
        assert connection.execute(text("SELECT attempts, error FROM firings")).one() == (2, "RuntimeError: no")


def test_an_action_that_is_done_is_not_repeated_when_the_next_one_fails(database: Database) -> None:
    journal, failures = Journal(), iter([True, False])

    def second(detection: Detection) -> None:
        if next(failures):
            raise ValueError("once")
        journal.lines.append(f"second {detection.idempotency_key[-1]}")

    with Desk(rules(rule("r")), database, {"r": [journal.note("first"), second]}) as desk:
        desk.agenda.take(0, desk.detect(a(1)))
        until(lambda: states(database) == {"done": 1})
    assert journal.lines == ["first1", "second 2"]


def test_a_callback_that_hangs_is_left_behind_and_the_next_firing_runs(database: Database) -> None:
    journal, gate = Journal(), threading.Event()

    def hang(detection: Detection) -> None:
        if detection.constituents[-1].n == 1:
            gate.wait(30)
        journal.lines.append(f"ran{detection.constituents[-1].n}")

    quick = settings(timeout=Duration.of("100 ms"), attempts=1)
    with Desk(rules(rule("r")), database, {"r": [hang]}, quick) as desk:
        desk.agenda.take(0, desk.detect(a(1), a(2)))
        assert journal.lines == ["ran2"]
        assert desk.agenda.status().hanging == 1
        assert states(database) == {"dead": 1, "done": 1}
        gate.set()
        until(lambda: desk.agenda.status().hanging == 0)
    assert states(database) == {"dead": 1, "done": 1}


def test_async_callbacks_run_and_are_cancelled_at_their_time_out(database: Database) -> None:
    import asyncio

    journal = Journal()

    async def wait(detection: Detection) -> None:
        await asyncio.sleep(0 if detection.constituents[-1].n == 1 else 60)
        journal.lines.append("ran")

    quick = settings(timeout=Duration.of("100 ms"), attempts=1)
    with Desk(rules(rule("r")), database, {"r": [wait]}, quick) as desk:
        desk.agenda.take(0, desk.detect(a(1), a(2)))
    assert journal.lines == ["ran"]
    assert states(database) == {"dead": 1, "done": 1}


def test_what_was_recorded_and_not_finished_runs_after_a_restart(database: Database) -> None:
    journal = Journal()
    notes = {"r": [journal.note("r")], "d": [journal.note("d")]}
    desk = Desk(rules(rule("r"), rule("d", more="coupling: deferred, priority: 9")), database, notes)
    desk.agenda.start()
    batch = desk.detect(a(1), a(2))

    class Killed(BaseException):
        pass

    def kill(point: str) -> None:
        if point == "after record":
            raise Killed

    desk.agenda._reach = kill
    with pytest.raises(Killed):
        desk.agenda.take(0, batch)
    desk.agenda.close()
    assert states(database) == {"pending": 4}
    with Desk(desk.text, database, notes) as again:
        assert journal.lines == ["r1", "r2", "d1", "d2"]
        again.agenda.take(0, batch)
    assert journal.lines == ["r1", "r2", "d1", "d2"]
    assert states(database) == {"done": 4}


def test_a_rule_in_another_context_gets_the_detections_of_that_context(database: Database) -> None:
    journal = Journal()
    text_ = rules(rule("own", "Pair"), rule("all", "Pair", "context: unrestricted"))
    notes = {"own": [journal.note("own")], "all": [journal.note("all")]}
    with Desk(text_, database, notes) as desk:
        rows = [("A", 1, {"n": 1}), ("A", 2, {"n": 1}), ("B", 3, {"n": 1})]
        desk.agenda.take(0, desk.detect(*rows))
    assert sorted(journal.lines) == ["all1", "all1", "own1"]
