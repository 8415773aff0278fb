"""The server behind the source `http`: bounded in time, size and number, and honest about what it refuses."""

from __future__ import annotations

import hmac
import io
import json
import logging
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from estream.errors import EStreamError, Problem
from estream.stream.channel import Channel
from estream.stream.source_http_body import CONTENT_TYPES, read_body

_LOG: Final = logging.getLogger("estream.http")
_LINGER: Final = 2.0
"""Seconds."""
_BUSY: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nConnection: close\r\n"
    b'Content-Type: application/json\r\nContent-Length: 38\r\n\r\n{"error": "too many requests at once"}'
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the server takes on."""

    bytes: int
    """Of one body."""
    requests: int
    """At one time."""
    backlog: int
    """Rows that the slowest reader of the channel may be behind."""
    seconds: float
    """For one request, from its first byte to its last."""


class _Refused(Exception):
    """A request that is not taken, with its answer."""

    def __init__(self, status: HTTPStatus, error: str, problems: Sequence[Problem] = ()) -> None:
        super().__init__(error)
        self.status = status
        self.answer: dict[str, Any] = {"error": error}
        if problems:
            self.answer["problems"] = [
                {"line": problem.place.line, "column": problem.place.column, "message": problem.message}
                for problem in problems
            ]


class Server(ThreadingHTTPServer):
    """Takes POSTs of rows for one channel; every request has a thread, and there are only so many."""

    daemon_threads = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], path: str, token: str, limits: Limits, channel: Channel) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.path, self.token, self.limits, self.channel = path, token, limits, channel
        self._free = threading.Semaphore(limits.requests)
        self._refusing = threading.Semaphore(limits.requests)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the connection a thread, or say at once that there is none."""
        if not self._free.acquire(blocking=False):
            self._refuse(request)
            return
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve the connection, then free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.discard(request)
            self._free.release()

    def _refuse(self, request: socket.socket) -> None:
        """Say that there is no place, off the thread that accepts; who comes when even that is too much is cut off."""
        if self._refusing.acquire(blocking=False):
            threading.Thread(target=self._say_busy, args=(request,)).start()
        else:
            self.shutdown_request(request)

    def _say_busy(self, request: socket.socket) -> None:
        try:
            request.settimeout(_LINGER)
            request.sendall(_BUSY)
            _linger(request)
        except OSError as error:
            _LOG.debug("a client left before it was refused: %s", error)
        finally:
            self.shutdown_request(request)
            self._refusing.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke ends in the log, not on the terminal."""
        _LOG.debug("a connection from %s broke", client_address, exc_info=True)

    def stop(self) -> None:
        """Take no more; requests that are being read end, those that are being kept are answered."""
        self.shutdown()
        with self._lock:
            for request in self._open:
                _end_reading(request)
        self.server_close()

    def take(self, content_type: str, body: bytes) -> dict[str, int]:
        """Keep the rows of a body; gives their number and the offset of the first."""
        try:
            rows = read_body(content_type, body, self.channel.schema)
            if not rows.num_rows:
                return {"rows": 0}
            return {"rows": rows.num_rows, "offset": self.channel.append(rows)}
        except EStreamError as error:
            first = error.problems[0] if error.problems else None
            told = f"line {first.place.line}: {first.message}" if first else str(error)
            raise _Refused(HTTPStatus.BAD_REQUEST, told, error.problems) from None
        except OSError:
            _LOG.exception("rows could not be kept in channel '%s'", self.channel.name)
            raise _Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the rows could not be kept; post them again") from None


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "estream"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self._reading = _Deadline(self.connection, self.server.limits.seconds)
        self.rfile = io.BufferedReader(self._reading)
        self._unread = False

    def finish(self) -> None:
        super().finish()
        if self._unread:
            _linger(self.connection)

    def handle_one_request(self) -> None:
        self._reading.restart()
        super().handle_one_request()

    def handle_expect_100(self) -> bool:
        """Say what is wrong before the client sends a body for nothing."""
        try:
            self._check()
        except _Refused as refused:
            self._answer(refused.status, refused.answer, close=True)
            return False
        return super().handle_expect_100()

    def do_POST(self) -> None:
        """Rows: 200 once they are kept."""
        try:
            length = self._check()
            body = self._body(length)
        except _Refused as refused:
            # The body was not read, so the connection cannot be used again.
            self._answer(refused.status, refused.answer, close=True)
            return
        try:
            self._answer(HTTPStatus.OK, self.server.take(self._content_type(), body))
        except _Refused as refused:
            self._answer(refused.status, refused.answer)

    def do_GET(self) -> None:
        """Only rows are taken."""
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "post rows to this address"}, close=True)

    do_PUT = do_DELETE = do_GET

    def log_message(self, format: str, *arguments: Any) -> None:
        _LOG.debug(format, *arguments)

    def _check(self) -> int:
        """The length of the body, if the request may send it."""
        if self.path.partition("?")[0].rstrip("/") != self.server.path.rstrip("/"):
            raise _Refused(HTTPStatus.NOT_FOUND, f"rows are posted to {self.server.path}")
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        right = hmac.compare_digest(token.strip().encode(), self.server.token.encode())
        if self.server.token and not (scheme.lower() == "bearer" and right):
            raise _Refused(HTTPStatus.UNAUTHORIZED, "a header 'Authorization: Bearer TOKEN' is needed")
        length = self.headers.get("Content-Length", "")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdigit()):
            raise _Refused(HTTPStatus.LENGTH_REQUIRED, "a header 'Content-Length' is needed; chunks are not taken")
        if len(length) > 18 or int(length) > self.server.limits.bytes:
            raise _Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"a body has at most {self.server.limits.bytes} bytes; post fewer rows",
            )
        if self._content_type() not in CONTENT_TYPES:
            raise _Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type is one of {', '.join(CONTENT_TYPES)}")
        if (self.server.channel.backlog() or 0) >= self.server.limits.backlog:
            raise _Refused(HTTPStatus.TOO_MANY_REQUESTS, "the query is behind; post again later")
        return int(length)

    def _content_type(self) -> str:
        return str(self.headers.get("Content-Type", "")).partition(";")[0].strip().lower()

    def _body(self, length: int) -> bytes:
        try:
            body = self.rfile.read(length)
        except TimeoutError:
            seconds = self.server.limits.seconds
            raise _Refused(HTTPStatus.REQUEST_TIMEOUT, f"a request takes at most {seconds:g} s") from None
        if len(body) < length:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"the body ended after {len(body)} of {length} bytes")
        return body

    def _answer(self, status: HTTPStatus, answer: dict[str, Any], close: bool = False) -> None:
        content = json.dumps(answer, ensure_ascii=False).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self.send_header("Retry-After", "1")
        if close:
            self._unread = True
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)


class _Deadline(io.RawIOBase):
    """Reads a connection up to a moment: a client that sends a byte now and then does not hold its place for ever."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection, self._seconds = connection, seconds
        self.restart()

    def restart(self) -> None:
        """Give the next request its time."""
        self._end = time.monotonic() + self._seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def _linger(connection: socket.socket) -> None:
    """Hear the client out for a moment: closing over what it sends would take the answer away from it."""
    end = time.monotonic() + _LINGER
    try:
        connection.shutdown(socket.SHUT_WR)
        while (left := end - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(65_536):
                return
    except OSError as error:
        _LOG.debug("a refused client left: %s", error)


def _end_reading(request: socket.socket) -> None:
    try:
        request.shutdown(socket.SHUT_RD)
    except OSError as error:
        _LOG.debug("a connection was closed already: %s", error)
