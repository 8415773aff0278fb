"""A file is run by one process at a time: another one that shares the history is refused, and takes over at its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text, update

from estream.errors import EStreamError
from estream.history.database import Database
from estream.history.tables import owners
from tests.history.conftest import Server
from tests.rule.desk import Desk

ROOT = Path(__file__).parents[2]
TEXT = """
events:
  A: {on: Rows}
rules:
  r: {on: A, actions: [{log: "x"}], retry: {attempts: 3}}
"""
ONE, TWO = (("A", n, {"n": n}) for n in (1.0, 2.0))
OTHER = f"""
import os, sys, time
from estream.history.database import Database
from tests.rule.desk import Desk

def hang(detection):
    if os.fork() == 0:
        os.close(1)
        time.sleep(60)  # a child that outlives its parent must not keep others out
        os._exit(0)
    print("under way", flush=True)
    time.sleep(60)

with Desk({TEXT!r}, Database(sys.argv[1]), {{"r": [hang]}}) as desk:
    desk.agenda.take(0, desk.detect({ONE!r}))
"""


@contextmanager
def other_process(database: Database) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the file, in the middle of an action."""
    url = database.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", OTHER, url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "under way\n"
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


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


def test_a_file_that_another_process_runs_is_refused_and_its_firings_are_left_alone(database: Database) -> None:
    seen: list[int] = []
    with other_process(database) as other:
        with pytest.raises(EStreamError, match=rf"'test' runs already .*, by process {other.pid} on .*; stop it, or"):
            Desk(TEXT, database, {"r": [lambda d: seen.append(d.id)]}).__enter__()
        assert states(database) == {"running": 1}
        assert seen == []


def test_after_a_kill_the_next_process_runs_what_was_not_finished(tmp_path: Path) -> None:
    database, seen = Database(f"sqlite:///{tmp_path}/history.db"), []
    with other_process(database) as other:
        other.kill()
        other.wait()
        with Desk(TEXT, database, {"r": [lambda d: seen.append(d.A.n)]}):
            assert seen == [1]
    assert states(database) == {"done": 1}
    database.close()


def test_files_of_other_names_share_a_history(database: Database) -> None:
    with Desk(TEXT, database) as one, Desk(TEXT, database, name="other") as two:
        one.agenda.take(0, one.detect(ONE))
        two.agenda.take(0, two.detect(ONE))
    assert states(database) == {"done": 2}
    with Desk(TEXT, database):
        pass


def test_one_process_does_not_run_a_file_twice(database: Database) -> None:
    with Desk(TEXT, database), pytest.raises(EStreamError, match=f"by process {os.getpid()} on"):
        Desk(TEXT, database).__enter__()


def test_a_process_that_lost_its_place_records_nothing_more(database: Database) -> None:
    with Desk(TEXT, database) as desk:
        desk.agenda.take(0, desk.detect(ONE))
        with database.begin() as connection:
            connection.execute(update(owners).values(token="another", pid=7, host="elsewhere"))
        with pytest.raises(EStreamError, match="by process 7 on elsewhere"):
            desk.agenda.take(1, desk.detect(TWO))
    assert states(database) == {"done": 1}


def test_after_the_database_was_away_the_place_is_kept(server: Server) -> None:
    database = Database(server.url)
    with database.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")

    def is_held() -> bool:
        with database.begin() as connection:
            return bool(connection.execute(text("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'")).all())

    with Desk(TEXT, database) as desk:
        server.stop()
        server.start()
        desk.agenda.take(0, desk.detect(ONE))
        until(is_held)
        with pytest.raises(EStreamError, match="runs already"):
            Desk(TEXT, database).__enter__()
    assert not is_held()
    database.close()
