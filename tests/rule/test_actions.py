"""Built-in actions against real sinks: files, an HTTP server, an SMTP server, a database, processes."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from sqlalchemy import create_engine, text

from estream.history.insert import Inserter
from estream.rule.action import Action, Services, build_action
from estream.rule.address import allowed_address, is_public
from estream.rule.detection import Detected, Detection, Occurrence
from estream.rule.failure import ActionFailed, ActionRefused
from estream.rule.webhook import signature
from estream.scalar import Duration
from estream.spec import model
from estream.text import Text

DETECTED = Detected(
    "Pair", None, 1_000_000, 2_000_000, 255,
    (Occurrence("A", 1, 1_000_000, {"n": 7, "name": 'a "b"\n../c'}), Occurrence("B", 2, 2_000_000, {"x": 1.5})),
)  # fmt: skip
DETECTION = Detection(DETECTED, "notify", "ceq.notify-00000000000000ff-0")


def built(spec: Any, services: Services | None = None) -> Action:
    return build_action(spec, services or Services(), lambda detection: {})


class Hook(ThreadingHTTPServer):
    """A server that answers with the statuses it was given, and remembers the requests."""

    daemon_threads = True

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.requests: list[tuple[Mapping[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), _Answer)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Answer(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.headers, body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 200)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def hook(*statuses: int) -> Iterator[Hook]:
    server = Hook(*statuses)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_log_writes_the_filled_template(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "estream.rules"):
        built(model.LogAction(log=Text("n {A.n} and {{x}} {B.x}"), level="warning")).perform(DETECTION, 1)
    assert caplog.messages == ["notify: n 7 and {x} 1.5"]


def test_file_appends_json_lines_and_a_value_cannot_leave_the_folder(tmp_path: Path) -> None:
    action = built(model.FileAction(file=model.File(path=Text("out/{A.name}.jsonl"))), Services(root=tmp_path))
    action.perform(DETECTION, 1)
    action.perform(DETECTION, 1)
    (file,) = (tmp_path / "out").iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 2
    assert lines[0]["key"] == DETECTION.idempotency_key
    assert lines[0]["constituents"][1] == {
        "event": "B", "time": "1970-01-01T00:00:02+00:00", "attributes": {"x": 1.5}}  # fmt: skip


FULL = """
import resource, sys
from pathlib import Path
from estream.rule.failure import ActionFailed
from tests.rule.test_actions import DETECTION, Services, Text, built, model

action = built(model.FileAction(file=model.File(path=Text("out.jsonl"))), Services(root=Path(sys.argv[1])))
action.perform(DETECTION, 1)
size = (Path(sys.argv[1]) / "out.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + size // 2, resource.RLIM_INFINITY))
for _ in range(2):
    try:
        action.perform(DETECTION, 1)
    except ActionFailed as error:
        print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
action.perform(DETECTION, 1)
"""


def test_a_file_without_room_takes_no_part_of_a_line(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "out.jsonl: no space left on device\n" * 2
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["key"] for line in lines] == [DETECTION.idempotency_key] * 2


def test_webhook_signs_the_request_and_carries_the_idempotency_key() -> None:
    with hook() as server:
        spec = model.Webhook(
            url=Text(server.url), secret=Text("s3cret"), body=Text('{"n": {A.n}, "name": "is {A.name}"}'),
            headers={Text("X-Name"): Text("{A.name}")}, allow_private=True,
        )  # fmt: skip
        built(model.WebhookAction(webhook=spec)).perform(DETECTION, 5)
    ((headers, body),) = server.requests
    assert json.loads(body) == {"n": 7, "name": 'is a "b"\n../c'}
    assert headers["Idempotency-Key"] == DETECTION.idempotency_key
    assert headers["X-Name"] == 'a "b" ../c'
    assert headers["X-EStream-Signature"] == f"sha256={signature('s3cret', int(headers['X-EStream-Time']), body)}"


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (503, ActionFailed, "answered 503"),
        (429, ActionFailed, "answered 429"),
        (404, ActionRefused, "answered 404"),
        (302, ActionRefused, "redirects are not followed"),
    ],
)
def test_webhook_tells_what_may_pass_from_what_never_will(status: int, kind: type[Exception], said: str) -> None:
    with hook(status) as server:
        spec = model.Webhook(url=Text(server.url), allow_private=True)
        with pytest.raises(kind, match=said):
            built(model.WebhookAction(webhook=spec)).perform(DETECTION, 5)
    assert len(server.requests) == 1


def test_webhook_refuses_private_addresses_whatever_name_they_have() -> None:
    with hook() as server:
        action = built(model.WebhookAction(webhook=model.Webhook(url=Text(server.url))))
        with pytest.raises(ActionRefused, match=r"127\.0\.0\.1, an address of a private network"):
            action.perform(DETECTION, 5)
        assert not server.requests
    with pytest.raises(ActionRefused, match=r"'inside\.example' is 10\.0\.0\.5"):
        allowed_address("inside.example", 443, False, lambda host, port: ["93.184.216.34", "10.0.0.5"])
    assert allowed_address("out.example", 443, False, lambda host, port: ["93.184.216.34"]) == "93.184.216.34"


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
     "::1", "::", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1"],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


def test_email_goes_to_the_server_and_a_value_cannot_add_a_header() -> None:
    class Inbox:
        def __init__(self) -> None:
            self.messages: list[Any] = []

        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            self.messages.append(envelope)
            return "250 OK"

    inbox = Inbox()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(inbox, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        mail = model.Email(
            to=(Text("desk@example.org"),), subject=Text("Case {A.n} {A.name}"), body=Text("x is {B.x}"),
            host=Text("127.0.0.1"), port=port, **{"from": Text("estream@example.org")},
        )  # fmt: skip
        built(model.EmailAction(email=mail)).perform(DETECTION, 5)
    finally:
        controller.stop()
    (envelope,) = inbox.messages
    assert envelope.rcpt_tos == ["desk@example.org"]
    content = envelope.content.decode()
    assert 'Subject: Case 7 a "b" ../c\r\n' in content
    assert "x is 1.5" in content
    assert f"Message-ID: <{DETECTION.idempotency_key}@estream>" in content


def test_email_to_a_server_that_is_down_may_be_tried_again() -> None:
    mail = model.Email(to=(Text("a@b.org"),), subject=Text("s"), host=Text("127.0.0.1"), port=1)
    with pytest.raises(ActionFailed, match=r"127\.0\.0\.1:1 could not be reached"):
        built(model.EmailAction(email=mail)).perform(DETECTION, 2)


def test_sql_inserts_a_row_once_with_the_types_of_its_values(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/sink.db"
    engine, inserter = create_engine(url), Inserter()
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE cases (n INTEGER, note TEXT, idempotency_key TEXT UNIQUE)"))
    values = {Text("n"): Text("{A.n}"), Text("note"): Text("x={B.x}'; DROP TABLE cases")}
    spec = model.SqlInsert(url=Text(url), table=Text("cases"), values=values)
    action = built(model.SqlAction(sql=spec), Services(insert=inserter.insert))
    for _ in range(2):
        action.perform(DETECTION, 5)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT n, note FROM cases")).all() == [(7, "x=1.5'; DROP TABLE cases")]
    wrong = model.SqlInsert(url=Text(url), table=Text("cases"), values={Text("m"): Text("1")})
    with pytest.raises(ActionRefused, match="table 'cases' has no m; it has n, note, idempotency_key"):
        built(model.SqlAction(sql=wrong), Services(insert=inserter.insert)).perform(DETECTION, 5)
    inserter.close()
    engine.dispose()


CALLBACKS = """
import os, time
from estream import action

@action
def right(detection):
    print("to nobody")
    detection.raise_event("Closed", n=detection.A.n)

@action
def leave(detection):
    os._exit(3)

@action
def hang(detection):
    while True:
        pass

@action
def hoard(detection):
    bytearray(1 << 40)

@action
async def later(detection):
    raise ValueError("no")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "desk.py").write_text(CALLBACKS)
    return rules


def test_an_isolated_callback_runs_in_its_own_process_and_its_events_are_raised_here(folder: Path) -> None:
    raised: list[tuple[str, Mapping[str, Any]]] = []
    detection = Detection(DETECTED, "r", "k", lambda event, attributes: raised.append((event, dict(attributes))))
    action = built(model.PythonAction(python=Text("rules.desk:right"), isolate=True), Services(rules=folder))
    action.perform(detection, 20)
    action.perform(detection, 20)
    action.close()
    assert raised == [("Closed", {"n": 7})] * 2


@pytest.mark.parametrize(
    ("function", "seconds", "said"),
    [
        ("leave", 20, "its process ended with status 3"),
        ("hang", 0.3, "took longer than 0.3 s; its process was killed"),
        ("hoard", 20, "MemoryError"),
        ("later", 20, "ValueError: no"),
    ],
)
def test_what_an_isolated_callback_does_harms_nothing_else(
    folder: Path, function: str, seconds: float, said: str
) -> None:
    spec = model.PythonAction(python=Text(f"rules.desk:{function}"), isolate=True)
    action = built(spec, Services(rules=folder))
    with pytest.raises(ActionFailed, match=said):
        action.perform(DETECTION, seconds)
    action.close()


def test_durations_of_webhooks_are_their_own() -> None:
    quiet = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)  # accepts and never answers
    spec = model.Webhook(
        url=Text(f"http://127.0.0.1:{quiet.server_address[1]}"), timeout=Duration.of("100 ms"), allow_private=True
    )
    with pytest.raises(ActionFailed, match="no answer in"):
        built(model.WebhookAction(webhook=spec)).perform(DETECTION, 60)
    quiet.server_close()
