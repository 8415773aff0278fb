"""Callbacks, values and servers that mean harm: whatever they do, other rules and the stream go on."""

from __future__ import annotations

import functools
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from estream.history.database import Database
from estream.history.insert import Inserter
from estream.history.query import Filter, lines
from estream.rule.action import Services, build_action
from estream.rule.breaker import FAILURES, REST, Breakers
from estream.rule.detection import Detected, Detection, Occurrence
from estream.rule.failure import ActionFailed, ActionRefused
from estream.rule.partition import partition_of
from estream.rule.registry import CallbackError, find
from estream.rule.template import is_json
from estream.spec import model
from estream.text import Text
from tests.rule.desk import Desk, settings

TEXT = """
events:
  A: {on: Rows}
rules:
  bad: {on: A, priority: 2, actions: [{log: "x"}]}
  good: {on: A, actions: [{log: "x"}]}
"""
ONE = ("A", 1.0, {"n": 1, "x": 1.0, "name": "x"})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path}/history.db")
    yield opened
    opened.close()


def states(database: Database) -> list[tuple[str, str, str | None]]:
    return sorted((one.rule, one.state, one.error) for one in lines(database, Filter()))


async def leave_later(detection: Detection) -> None:
    sys.exit(3)


def leave(detection: Detection) -> None:
    sys.exit(3)


@pytest.mark.parametrize("callback", [leave, leave_later])
def test_a_callback_that_wants_to_end_the_program_fails_and_others_go_on(database: Database, callback: Any) -> None:
    with Desk(TEXT, database, {"bad": [callback]}, settings(attempts=2)) as desk:
        for batch in range(3):
            desk.agenda.take(batch, desk.detect(("A", 1.0 + batch, {"n": batch})))
        for _ in range(500):
            if len([one for one in states(database) if one[1] == "dead"]) == 3:
                break
            threading.Event().wait(0.01)
    assert states(database) == [("bad", "dead", "SystemExit: 3")] * 3 + [("good", "done", None)] * 3


def test_what_a_callback_changes_of_a_detection_others_do_not_see(database: Database) -> None:
    seen: list[Any] = []

    def change(detection: Detection) -> None:
        detection.A.attributes["n"] = 99  # type: ignore[index]

    with Desk(TEXT, database, {"bad": [change], "good": [lambda d: seen.append(d.A.n)]}, settings(attempts=1)) as desk:
        desk.agenda.take(0, desk.detect(ONE))
    assert seen == [1]
    assert states(database)[0][1] == "dead"


def test_a_throttled_rule_with_a_condition_in_python_is_tried_again(database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "always.py").write_text("import estream\n\n@estream.condition\ndef so(d):\n    return True\n")
    text = TEXT.replace(
        "bad: {on: A, priority: 2,", "bad: {on: A, throttle: 1 hour, condition: {python: rules.always:so},"
    )
    broken = [True]

    def flaky(detection: Detection) -> None:
        if broken.pop() if broken else False:
            raise ValueError("once")

    services = Services(rules=folder)
    with Desk(text, database, {"bad": [flaky]}, services=services) as desk:
        desk.agenda.take(0, desk.detect(ONE, ("A", 2.0, {"n": 2})))
        for _ in range(500):
            if not any(one[1] == "failed" for one in states(database)):
                break
            threading.Event().wait(0.01)
    assert [one[:2] for one in states(database)] == [
        ("bad", "done"), ("bad", "throttled"), ("good", "done"), ("good", "done")]  # fmt: skip


def test_a_trial_that_was_refused_does_not_keep_the_circuit_open_for_ever() -> None:
    now = [0]
    breakers = Breakers(lambda: now[0])
    for _ in range(FAILURES):
        breakers.report("hook", False)
    now[0] = REST
    assert breakers.wait("hook") is None
    breakers.release("hook")
    assert breakers.wait("hook") is None


def test_functions_without_a_name_can_be_registered(database: Database) -> None:
    seen: list[Any] = []
    with Desk(TEXT, database, {"A": [functools.partial(lambda word, d: seen.append((word, d.A.n)), "hello")]}) as desk:
        desk.agenda.take(0, desk.detect(ONE))
    assert seen == [("hello", 1)]


def test_partitions_that_differ_have_texts_that_differ() -> None:
    def shown(a: Any, b: Any) -> str:
        return partition_of({"A": ("a", "b")}, Detected("E", None, 0, 0, 1, (Occurrence("A", 1, 0, {"a": a, "b": b}),)))

    assert shown("7", 3) == "a=7, b=3"
    values = [("1", "2, b=3"), ("1, b=2", "3"), (None, "x"), ("null", "x"), ("", "x"), ('"', "x"), (" 1", "x")]
    assert len({shown(*pair) for pair in values}) == len(values)


@pytest.mark.parametrize("word", ["import sys; sys.exit(0)\n", "print('loaded')\nraise SystemExit\n"])
def test_a_module_that_ends_the_program_cannot_be_imported(
    tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "ends.py").write_text(word)
    with pytest.raises(CallbackError, match=r"'rules\.ends' cannot be imported: SystemExit"):
        find(folder, "rules.ends:f", "action")
    assert capsys.readouterr().out == ""


def detection(**values: Any) -> Detection:
    detected = Detected("A", None, 0, 0, 1, (Occurrence("A", 1, 0, values),))
    return Detection(detected, "r", "key")


def hook(url: str, **more: Any) -> Any:
    spec = model.Webhook(url=Text(url), allow_private=True, **more)
    return build_action(model.WebhookAction(webhook=spec), Services(), lambda detection: {})


def test_a_server_that_drips_its_answer_is_left_at_the_time_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                while not over.wait(0.05):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        action = hook(f"http://127.0.0.1:{server.getsockname()[1]}/")
        with pytest.raises(ActionFailed, match=r"no answer in 0\.3 s"):
            action.perform(detection(), 0.3)
        over.set()
        thread.join()


def test_values_of_any_script_go_into_headers() -> None:
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                asked.append(connection.recv(65_536))
                connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        hook(url, headers={Text("X-Name"): Text("{A.name}")}).perform(detection(name="→\u2028X-Evil: 1"), 5)
        thread.join()
    assert "X-Name: → X-Evil: 1\r\n".encode() in asked[0]
    with pytest.raises(ActionRefused, match="cannot be called so"):
        hook(url, headers={Text("X:Name"): Text("x")}).perform(detection(), 1)


def test_a_text_that_begins_with_a_value_is_no_json() -> None:
    assert is_json('{"n": {A.n}, "t": "is {A.name}"}')
    assert is_json("[{A.n}]")
    assert not is_json("{A.name} is late")


@contextmanager
def busy(status: int, after: str) -> Iterator[tuple[str, list[bytes]]]:
    """A server that asks all to come again later; gives its address, and what was said to it."""
    said: list[bytes] = []

    class Busy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.send_header("Retry-After", after)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Busy) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", said
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        ("120", 120.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 0.0),
        ("99999999999999999999", 3600.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600.0),
        ("soon", None),
        ("-5", None),
    ],
)
def test_a_server_says_when_it_wants_to_be_asked_again(after: str, seconds: float | None) -> None:
    with busy(429, after) as (url, _), pytest.raises(ActionFailed, match="answered 429") as failed:
        hook(url).perform(detection(), 5)
    assert failed.value.after == seconds


def test_a_server_that_asks_for_a_rest_gets_it_from_all_firings(database: Database) -> None:
    with busy(503, "100") as (url, asked):
        text = TEXT.replace('priority: 2, actions: [{log: "x"}]', f"priority: 2, actions: [{{webhook: '{url}'}}]")
        services = Services(allow_private=True)
        with Desk(text, database, services=services, clock=lambda: 1_000) as desk:
            desk.agenda.take(0, desk.detect(*(("A", n, {"n": n}) for n in range(4))))
    assert len(asked) == 1
    with database.begin() as connection:
        rows = connection.exec_driver_sql("SELECT state, attempts, due FROM firings WHERE rule = 1 ORDER BY number")
        assert [tuple(row) for row in rows] == [("failed", 1, 100_001_000)] + [("failed", 0, 100_001_000)] * 3


def test_a_database_that_does_not_answer_keeps_no_other_waiting(tmp_path: Path) -> None:
    url, inserter = f"sqlite:///{tmp_path}/sink.db", Inserter()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE cases (n INTEGER)")
    values, told = {Text("n"): Text("1")}, []

    def hang() -> None:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        dead = model.SqlInsert(url=Text(f"postgresql://x@{address}/x"), table=Text("cases"), values=values)
        try:
            inserter.insert(dead, {}, "k")
        except ActionFailed as error:
            told.append(error)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        hanging = threading.Thread(target=hang)
        hanging.start()
        with silent.accept()[0]:
            inserter.insert(model.SqlInsert(url=Text(url), table=Text("cases"), values=values), {"n": 1}, "k")
            assert hanging.is_alive()
    hanging.join(30)
    assert len(told) == 1
    with engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT n FROM cases").scalar() == 1
    engine.dispose()
    inserter.close()
