"""The history on SQLite and on PostgreSQL: what is recorded once, what runs again, what is asked and pruned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import event, text

from estream.errors import EStreamError
from estream.history import present
from estream.history.database import Database
from estream.history.prune import fold_counts, prune, prune_throttles
from estream.history.query import Filter, lines, retry, totals, whole
from estream.history.tables import metadata
from estream.rule.detection import Detection
from tests.history.conftest import Server
from tests.rule.desk import Desk

TEXT = """
events:
  A: {on: Rows}
  B: {on: Rows}
  Pair: {when: A ; B, context: chronicle, partition_by: n}
rules:
  notify: {on: Pair, condition: B.x > A.x, actions: [{log: "pair {A.n}"}], retry: {attempts: 1}}
  slow: {on: Pair, throttle: 1 h, actions: [{log: "slow"}]}
"""


def pair(n: int, second: float, *, x: float = 2.0) -> list[tuple[str, float, dict[str, Any]]]:
    return [("A", second - 0.5, {"n": n, "x": 1.0, "name": "ä'\"\\"}), ("B", second, {"n": n, "x": x})]


def states(database: Database) -> dict[str, int]:
    with database.begin() as connection:
        rows = connection.execute(text("SELECT state, count(*) AS number FROM firings GROUP BY state"))
        return {row.state: row.number for row in rows}


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    gate = threading.Event()
    for _ in range(1500):
        if is_so():
            return
        gate.wait(0.01)
    raise AssertionError("it did not come about")


def test_the_migrations_make_the_tables_that_the_code_knows(database: Database) -> None:
    database.upgrade()
    database.upgrade()
    with database.begin() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_detections_and_firings_are_recorded_once(database: Database) -> None:
    with Desk(TEXT, database) as desk:
        batch = desk.detect(*pair(1, 1), *pair(2, 2, x=0.0), *pair(1, 3))
        for _ in range(2):
            desk.agenda.take(4, batch)
    assert states(database) == {"done": 4, "suppressed": 1, "throttled": 1}
    with database.begin() as connection:
        assert connection.execute(text("SELECT count(*), min(batch), max(batch) FROM detections")).one() == (3, 4, 4)
        assert connection.execute(text("SELECT count(*) FROM attempts")).scalar() == 4


def test_a_firing_that_was_not_finished_gets_its_values_back_with_their_types(database: Database) -> None:
    seen: list[tuple[Any, ...]] = []

    def note(detection: Detection) -> None:
        one = detection.A
        seen.append((one.n, one.x, one.name, one.ts, detection.start, detection.idempotency_key))

    with Desk(TEXT, database, {"notify": [note]}) as desk:
        desk.agenda.take(0, desk.detect(*pair(1, 1)))
        first = list(seen)
        with database.begin() as connection:
            connection.execute(text("UPDATE firings SET state = 'running', step = 0 WHERE state = 'done'"))
    with Desk(TEXT.replace("attempts: 1", "attempts: 3"), database, {"notify": [note]}):
        pass
    assert seen == first * 2


def test_a_callback_that_ends_the_process_again_and_again_is_a_dead_letter(database: Database) -> None:
    with Desk(TEXT, database) as desk:
        desk.agenda.take(0, desk.detect(*pair(1, 1)))
        with database.begin() as connection:
            connection.execute(text("UPDATE firings SET state = 'running', attempts = 0"))
    with Desk(TEXT, database):
        pass
    dead = lines(database, Filter(state="dead"))
    assert [(one.rule, one.error) for one in dead] == [("notify", "the process ended while it ran, for the 1. time")]


def test_firings_are_found_by_rule_event_time_partition_and_state(database: Database) -> None:
    with Desk(TEXT, database) as desk:
        desk.agenda.take(0, desk.detect(*pair(1, 1), *pair(11, 5), *pair(2, 9, x=0.0)))

    def found(**wanted: Any) -> list[tuple[str, str | None]]:
        return [(one.rule, one.partition) for one in lines(database, Filter(**wanted))]

    assert found(key="n=1") == [("slow", "n=1"), ("notify", "n=1")]
    assert found(rule="notify", since=5_000_000) == [("notify", "n=2"), ("notify", "n=11")]
    assert found(rule="notify", until=5_000_000) == [("notify", "n=1")]
    assert found(state="suppressed") == [("notify", "n=2")]
    assert found(event="A") == []
    assert len(found(limit=2)) == 2


def test_one_firing_is_shown_with_its_timeline_condition_and_attempts(database: Database) -> None:
    def fail(detection: Detection) -> None:
        raise ValueError("the desk is closed")

    with Desk(TEXT, database, {"notify": [fail]}) as desk:
        desk.agenda.take(0, desk.detect(*pair(7, 1)))
    (dead,) = lines(database, Filter(state="dead"))
    shown = "\n".join(present.to_text_whole(whole(database, dead.number)))
    assert "rule notify of test on Pair: dead" in shown
    assert "1970-01-01T00:00:00.500000Z  +0.000 s  A  " in shown
    assert "B.x = 2.0" in shown
    assert "ValueError: the desk is closed" in shown
    data = present.whole_as_data(whole(database, dead.number))
    assert data["condition"] == {"text": "B.x > A.x", "values": {"B.x": 2.0, "A.x": 1.0}}
    with pytest.raises(EStreamError, match="no firing 999"):
        whole(database, 999)


def test_a_dead_letter_is_tried_again_when_it_is_asked_for(database: Database) -> None:
    broken = [True]

    def flaky(detection: Detection) -> None:
        if broken[0]:
            raise ValueError("broken")

    with Desk(TEXT, database, {"notify": [flaky]}) as desk:
        desk.agenda.take(0, desk.detect(*pair(1, 1)))
        (dead,) = lines(database, Filter(state="dead"))
        with pytest.raises(EStreamError, match="is done; only a failed or dead one"):
            retry(database, [one.number for one in lines(database, Filter())])
        broken[0] = False
        assert retry(database, [dead.number]) == 1
        until(lambda: states(database) == {"done": 2})
    assert retry(database, None) == 0


def test_old_records_are_pruned_in_small_steps_but_dead_letters_stay(database: Database) -> None:
    def fail(detection: Detection) -> None:
        if detection.A.n == 3:
            raise ValueError("no")

    with Desk(TEXT, database, {"notify": [fail]}, clock=lambda: 1_000) as desk:
        desk.agenda.take(0, desk.detect(*(row for n in range(7) for row in pair(n, n + 1))))
    with Desk(TEXT, database, clock=lambda: 9_000) as desk:
        desk.agenda.take(1, desk.detect(*pair(100, 100)))
    assert list(prune(database, 5_000, step=3)) == [3, 2, 1]
    with database.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM detections")).scalar() == 2
        assert connection.execute(text("SELECT count(*) FROM firings")).scalar() == 4
    assert list(prune(database, 5_000, step=3)) == [0]


def test_pruning_looks_through_no_table_as_a_whole(tmp_path: Any) -> None:
    database, asked = Database(f"sqlite:///{tmp_path}/history.db"), set()
    with Desk(TEXT, database, clock=lambda: 1_000) as desk:
        desk.agenda.take(0, desk.detect(*(row for n in range(9) for row in pair(n, n + 1))))

    @event.listens_for(database.engine, "before_cursor_execute")
    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool) -> None:
        asked.add((statement, tuple(parameters[0] if many else parameters)))

    assert list(prune(database, 5_000)) == [9]
    event.remove(database.engine, "before_cursor_execute", note)
    with database.begin() as connection:
        plans = [
            row.detail
            for statement, parameters in asked
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]
    assert plans
    assert [plan for plan in plans if plan.startswith("SCAN") and plan.split()[1] not in ("rules", "events")] == []
    database.close()


def test_throttles_that_are_long_over_are_forgotten(database: Database) -> None:
    hour, days = 3600, 86_400
    with Desk(TEXT, database) as desk:
        desk.agenda.take(0, desk.detect(*pair(1, 1), *pair(2, 1 + hour), *pair(3, 3 * days), *pair(4, 3 * days + 60)))
    assert list(prune_throttles(database, "test", {"slow": hour * 1_000_000}, step=3)) == [2, 0]
    with database.begin() as connection:
        kept = connection.execute(text("SELECT partition FROM throttles ORDER BY partition")).scalars().all()
    assert kept == ["n=3", "n=4"]


def test_counts_of_old_micro_batches_are_added_up(database: Database) -> None:
    with Desk(TEXT, database) as desk:
        for batch in range(10):
            desk.store.count(batch, [("Rows", "late", 1), ("Rows", "dead", 2)])
    for _ in range(2):
        fold_counts(database, "test", keep=3)
        assert totals(database) == [("test", "Rows", "dead", 20), ("test", "Rows", "late", 10)]
    with database.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM counts WHERE kind = 'late'")).scalar() == 5
    desk.store.count(9, [("Rows", "late", 1)])
    assert totals(database)[1] == ("test", "Rows", "late", 10)


def test_late_rows_and_dead_letters_are_counted_by_source(database: Database) -> None:
    with Desk(TEXT, database) as desk:
        for _ in range(2):
            desk.store.count(1, [("Rows", "late", 3), ("Rows", "dead", 1)])
        desk.store.count(2, [("Rows", "late", 2)])
    assert totals(database) == [("test", "Rows", "dead", 1), ("test", "Rows", "late", 5)]


def test_while_the_database_is_away_the_stream_waits_and_then_goes_on(server: Server) -> None:
    database = Database(server.url)
    with database.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    with Desk(TEXT, database) as desk:
        desk.agenda.take(0, desk.detect(*pair(1, 1)))
        server.stop()
        taking = threading.Thread(target=desk.agenda.take, args=(1, desk.detect(*pair(2, 2))))
        taking.start()
        taking.join(0.5)
        assert taking.is_alive()
        server.start()
        taking.join(30)
        assert not taking.is_alive()
    assert states(database) == {"done": 4}
    database.close()


def test_who_is_told_to_stop_does_not_wait_for_a_database_that_is_away(server: Server) -> None:
    database, stopping, gate = Database(server.url), [False], threading.Event()
    with database.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    apart = TEXT.replace("slow: {on: Pair, throttle: 1 h,", "slow: {on: Pair, coupling: detached,")
    told: list[str] = []

    def take(desk: Desk) -> None:
        try:
            desk.agenda.take(1, desk.detect(*(row for n in range(2, 9) for row in pair(n, n))))
        except EStreamError as error:
            told.append(str(error))

    with Desk(apart, database, {"slow": [lambda d: gate.wait(30)]}, is_stopping=lambda: stopping[0]) as desk:
        desk.agenda.take(0, desk.detect(*pair(1, 1)))
        server.stop()
        try:
            taking = threading.Thread(target=take, args=(desk,))
            taking.start()
            gate.set()
            taking.join(0.5)
            assert taking.is_alive()
            stopping[0] = True
            taking.join(30)
            desk.agenda.drain(30)
        finally:
            stopping[0] = True
            desk.agenda.close()
            server.start()
    assert len(told) == 1
    assert told[0].startswith("stopped while the history is away: ")
    with Desk(apart, database) as desk:
        take(desk)
        assert desk.agenda.drain(30)
    assert states(database) == {"done": 16}
    database.close()


def test_no_action_runs_whose_outcome_cannot_be_recorded(database: Database) -> None:
    ran: list[int] = []

    def note(detection: Detection) -> None:
        if not ran:
            with database.begin() as connection:
                connection.execute(text("UPDATE owners SET token = 'another'"))
        ran.append(detection.A.n)

    apart = TEXT.replace("slow: {on: Pair, throttle: 1 h,", "slow: {on: Pair, coupling: detached,")
    with Desk(apart, database, {"slow": [note], "notify": [note]}) as desk:
        with pytest.raises(EStreamError, match="runs already with this history"):
            desk.agenda.take(0, desk.detect(*(row for n in range(3_000) for row in pair(n, n + 1))))
        desk.agenda.drain(30)
    assert len(ran) < 1_000


def test_a_database_without_room_is_a_clean_stop_and_it_goes_on_later(tmp_path: Any) -> None:
    database = Database(f"sqlite:///{tmp_path}/history.db")
    database.upgrade()

    def pages(most: int) -> None:
        @event.listens_for(database.engine, "connect")
        def limit(connection: Any, record: Any) -> None:
            connection.execute(f"PRAGMA max_page_count = {most}")

        database.engine.dispose()

    with database.begin() as connection:
        size = connection.exec_driver_sql("PRAGMA page_count").scalar()
    batch_rows = [row for n in range(500) for row in pair(n, n + 1)]
    pages(int(size or 0) + 4)
    with Desk(TEXT, database) as desk:
        batch = desk.detect(*batch_rows)
        with pytest.raises(EStreamError, match="no room left for the history; make room and start again"):
            desk.agenda.take(0, batch)
    pages(1_000_000)
    with Desk(TEXT, database) as desk:
        assert desk.agenda.take(0, batch).new == 500
    assert states(database) == {"done": 1000}
