"""The http source: rows are in the channel before they are acknowledged, and whatever is refused is refused whole."""

from __future__ import annotations

import json
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from estream.errors import EStreamError
from estream.spec.types import INT, TIMESTAMP
from estream.stream.source_http import HttpOptions, Receiver, receiver

COLUMNS = {"ts": TIMESTAMP, "n": INT}
LINES = "application/x-ndjson"


@contextmanager
def listening(folder: Path, **options: str) -> Iterator[Receiver]:
    with receiver("Readings", COLUMNS, "ts", {"port": "0", "token": "secret", **options}, folder) as started:
        yield started


def connect(server: Receiver) -> HTTPConnection:
    address = urlsplit(server.url)
    return HTTPConnection(address.hostname or "", address.port, timeout=20)


def post(
    server: Receiver, body: bytes | str, kind: str = LINES, token: str = "secret", **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    connection = connect(server)
    given = {"Content-Type": kind, "Authorization": f"Bearer {token}", **headers}
    connection.request("POST", "/Readings", body.encode() if isinstance(body, str) else body, given)
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read()), dict(answer.getheaders())
    connection.close()
    return found


def kept(server: Receiver) -> list[int]:
    return [value for block in server.channel.read() for value in block.rows["n"].to_pylist()]


def test_rows_are_kept_before_they_are_acknowledged(tmp_path: Path) -> None:
    with listening(tmp_path) as server:
        assert post(server, '{"n": 1}\n{"n": 2}\n')[:2] == (200, {"rows": 2, "offset": 0})
        assert kept(server) == [1, 2]
        assert post(server, '[{"n": 3},\n {"n": 4}]', "application/json; charset=utf-8")[1] == {"rows": 2, "offset": 2}
        assert post(server, '{"n": 5}', "application/json")[1] == {"rows": 1, "offset": 4}
        assert post(server, "\n")[1] == {"rows": 0}
    assert kept(server) == [1, 2, 3, 4, 5]
    assert all(block.rows["ts"].null_count == 0 for block in server.channel.read())


def test_arrow_streams_are_taken(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([7, 8], pa.int64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body, kind = sink.getvalue().to_pybytes(), "application/vnd.apache.arrow.stream"
    with listening(tmp_path) as server:
        assert post(server, body, kind)[0] == 200
        assert kept(server) == [7, 8]
        status, answer, _ = post(server, body[:60], kind)
        assert (status, answer["error"].partition(":")[0]) == (400, "this is no Arrow stream")
        assert kept(server) == [7, 8]


def test_wrong_rows_are_refused_whole_with_line_and_column(tmp_path: Path) -> None:
    with listening(tmp_path) as server:
        status, answer, _ = post(server, '{"n": 1}\n{"m": 1}\n{"n": "x"}\n')
        assert status == 400
        assert answer["error"] == "line 2: unknown column 'm'; right: ts, n"
        assert answer["problems"] == [
            {"line": 2, "column": 2, "message": "unknown column 'm'; right: ts, n"},
            {"line": 3, "column": 2, "message": "column 'n' is int; found the text 'x'"},
        ]
        assert post(server, b'{"n": "\xff"}')[1] == {"error": "byte 7 of the body is no UTF-8"}
        assert post(server, '{"n":', "application/json")[1]["problems"][0]["column"] == 6
        assert kept(server) == []


@pytest.mark.parametrize("token", ["wrong", "", "sécret"])
def test_without_the_token_nothing_is_taken(tmp_path: Path, token: str) -> None:
    with listening(tmp_path) as server:
        status, _, headers = post(server, '{"n": 1}', token=token)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer")
        assert kept(server) == []


def test_a_token_is_made_and_kept_for_its_owner_only(tmp_path: Path) -> None:
    for _ in range(2):
        with listening(tmp_path, token="") as server:
            token = server.token_file.read_text()
            assert post(server, '{"n": 1}', token=token)[0] == 200
            assert post(server, '{"n": 1}', token="")[0] == 401
            assert stat.S_IMODE(server.token_file.stat().st_mode) == 0o600
    assert len(token) > 30
    assert kept(server) == [1, 1]


def test_open_is_for_this_machine_only(tmp_path: Path) -> None:
    with listening(tmp_path, open="true") as server:
        assert post(server, '{"n": 1}', token="")[0] == 200
    with pytest.raises(EStreamError, match=r"'open' is for this machine only; 0\.0\.0\.0 needs a token"):
        HttpOptions.of({"open": "true", "host": "0.0.0.0"}, "Readings")


def test_a_body_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    with listening(tmp_path, max_bytes="100") as server:
        status, answer, _ = post(server, '{"n": 1}\n' * 500_000)
        assert (status, answer) == (413, {"error": "a body has at most 100 bytes; post fewer rows"})
        status, _, _ = post(server, "", **{"Content-Length": "9" * 30})
        assert status == 413


@pytest.mark.parametrize(
    ("kind", "headers", "status"),
    [
        ("text/plain", {}, 415),
        (LINES, {"Transfer-Encoding": "chunked"}, 411),
        (LINES, {"Content-Length": "-5"}, 411),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, kind: str, headers: dict[str, str], status: int) -> None:
    with listening(tmp_path) as server:
        assert post(server, "", kind, **headers)[0] == status


def test_another_address_or_method_is_told(tmp_path: Path) -> None:
    with listening(tmp_path, path="/in/readings") as server:
        assert post(server, '{"n": 1}')[:2] == (404, {"error": "rows are posted to /in/readings"})
        connection = connect(server)
        connection.request("GET", "/in/readings")
        with connection.getresponse() as answer:
            assert answer.status == 405
        connection.close()


def test_who_posts_faster_than_the_query_reads_has_to_wait(tmp_path: Path) -> None:
    with listening(tmp_path, backlog="3") as server:
        server.channel.readers.hold("query", 0)
        assert post(server, '{"n": 1}\n{"n": 2}\n{"n": 3}\n')[0] == 200
        status, _, headers = post(server, '{"n": 4}')
        assert (status, headers["Retry-After"]) == (429, "1")
        server.channel.readers.hold("query", 1)
        assert post(server, '{"n": 4}')[0] == 200


def test_there_are_only_so_many_requests_at_once(tmp_path: Path) -> None:
    with listening(tmp_path, max_requests="1", timeout="20 s") as server:
        first = connect(server)
        first.request("POST", "/Readings", '{"n": 1}', {"Content-Type": LINES, "Authorization": "Bearer secret"})
        with first.getresponse() as taken:
            assert taken.status == 200
            taken.read()
        status, answer, headers = post(server, '{"n": 2}')
        assert (status, answer, headers["Retry-After"]) == (429, {"error": "too many requests at once"}, "1")
        first.close()


def test_a_client_that_is_too_slow_loses_its_place(tmp_path: Path) -> None:
    head = f"POST /Readings HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\nContent-Type: {LINES}\r\n"
    with listening(tmp_path, timeout="100 ms") as server:
        address = urlsplit(server.url)
        for sent in (head + 'Content-Length: 50\r\n\r\n{"n"', head, ""):
            with socket.create_connection((address.hostname, address.port), timeout=20) as client:
                client.sendall(sent.encode())
                with client.makefile("rb") as heard:
                    answer = heard.read()
            assert answer.startswith(b"HTTP/1.1 408") is ("Content-Length" in sent)
        assert kept(server) == []


def test_a_client_hears_what_is_wrong_before_it_sends_its_body(tmp_path: Path) -> None:
    with listening(tmp_path) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=20) as client:
            client.sendall(b"POST /Readings HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n")
            with client.makefile("rb") as heard:
                assert heard.readline() == b"HTTP/1.1 401 Unauthorized\r\n"


def test_many_clients_lose_nothing(tmp_path: Path) -> None:
    answers: list[int] = []
    with listening(tmp_path) as server:

        def client(first: int) -> None:
            answers.extend(post(server, f'{{"n": {first + number}}}')[0] for number in range(10))

        clients = [threading.Thread(target=client, args=(number * 10,)) for number in range(8)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
    assert answers == [200] * 80
    assert sorted(kept(server)) == list(range(80))


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with (
        listening(tmp_path) as server,
        pytest.raises(EStreamError, match=r"source 'http': cannot listen at 127\.0\.0\.1:\d+: address already in use"),
        listening(tmp_path / "other", port=str(urlsplit(server.url).port)),
    ):
        pass
