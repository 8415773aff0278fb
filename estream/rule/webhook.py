"""Webhooks: one signed HTTP request, to a public address, with no redirect followed."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from estream.rule.address import Resolve, allowed_address, resolve
from estream.rule.detection import Detection
from estream.rule.failure import ActionFailed, ActionRefused
from estream.rule.template import fill, fill_json, in_line, in_url, is_json
from estream.rule.values import detection_as_data
from estream.spec.model import Webhook

_PORTS: Final = {"http": 80, "https": 443}
_REPEATABLE: Final = (408, 425, 429)
"""Statuses below 500 after which it makes sense to try again."""
_LONGEST_ANSWER: Final = 65_536
_LONGEST_REST: Final = 3_600.0
"""Seconds that a server is left alone for at most, whatever it asks for."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes."""

    scheme: str
    host: str
    port: int
    path: str


def target_of(url: str) -> Target:
    """The parts of a URL; ActionRefused if it is none that can be called."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ActionRefused("the URL cannot be read; write https://host/path") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ActionRefused("the URL has no host to call; write https://host/path")
    if parts.username is not None:
        raise ActionRefused("the URL has a user; give a header 'Authorization' instead")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], path)


def signature(secret: str, sent: int, body: bytes) -> str:
    """What the header `X-EStream-Signature` carries: HMAC-SHA256 of `<time>.<body>`, in hexadecimal."""
    return hmac.new(secret.encode("utf-8"), f"{sent}.".encode() + body, hashlib.sha256).hexdigest()


def send(
    hook: Webhook,
    detection: Detection,
    seconds: float,
    allow_private: bool,
    lookup: Resolve = resolve,
    clock: Callable[[], float] = time.time,
) -> None:
    """Make the request; ActionFailed and ActionRefused say how it failed."""
    detected = detection.detected
    target = target_of(fill(hook.url, detected, in_url))
    body = _body(hook, detection)
    sent = int(clock())
    headers = {
        "Content-Type": "application/json" if hook.body is None or is_json(hook.body) else "text/plain; charset=utf-8",
        "User-Agent": "estream",
        "Idempotency-Key": detection.idempotency_key,
        "X-EStream-Time": str(sent),
        **{in_line(str(name)): in_line(fill(value, detected, in_line)) for name, value in hook.headers.items()},
    }
    if hook.secret:
        headers["X-EStream-Signature"] = f"sha256={signature(hook.secret, sent, body)}"
    address = allowed_address(target.host, target.port, allow_private or hook.allow_private, lookup)
    status, said, after = _request(target, address, hook.method, headers, body, seconds)
    if 300 <= status < 400:
        raise ActionRefused(f"'{target.host}' answered {status}; redirects are not followed")
    if status < 200 or status >= 500 or status in _REPEATABLE:
        raise ActionFailed(f"'{target.host}' answered {status} {said}", _seconds(after, clock()))
    if status >= 400:
        raise ActionRefused(f"'{target.host}' answered {status} {said}")


def _seconds(after: str | None, now: float) -> float | None:
    """What the header `Retry-After` says, a number of seconds or a time; None if it says nothing that can be read."""
    if after is None:
        return None
    if after.strip().isdecimal():
        return min(float(after), _LONGEST_REST)
    try:
        return min(max(parsedate_to_datetime(after).timestamp() - now, 0.0), _LONGEST_REST)
    except (ValueError, OverflowError):
        return None


def _body(hook: Webhook, detection: Detection) -> bytes:
    if hook.body is None:
        data = {"rule": detection.rule, "key": detection.idempotency_key, **detection_as_data(detection.detected)}
        return json.dumps(data, ensure_ascii=False).encode("utf-8")
    filled = fill_json if is_json(hook.body) else fill
    return filled(hook.body, detection.detected).encode("utf-8")


class _Connection(http.client.HTTPConnection):
    """A connection to an address that was looked at, under the host's name."""

    def __init__(self, target: Target, address: str, seconds: float) -> None:
        super().__init__(target.host, target.port, timeout=seconds)
        self._address, self._is_secure = address, target.scheme == "https"
        self.is_cut = False

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._is_secure:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)

    def cut(self) -> None:
        """End what is under way, from another thread."""
        self.is_cut = True
        if self.sock is not None:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)


def _request(
    target: Target, address: str, method: str, headers: dict[str, str], body: bytes, seconds: float
) -> tuple[int, str, str | None]:
    """The status of the answer, the beginning of what it says, and when it wants to be asked again."""
    connection = _Connection(target, address, seconds)
    # A time-out of the socket begins anew with each byte; a server that drips would never meet it.
    over = threading.Timer(seconds, connection.cut)
    over.daemon = True
    over.start()
    try:
        connection.request(method, target.path, body, {name: text.encode("utf-8") for name, text in headers.items()})
        answer = connection.getresponse()
        said = answer.read(_LONGEST_ANSWER)[:200].decode("utf-8", "replace")
        return answer.status, " ".join(said.split()), answer.getheader("Retry-After")
    except (http.client.InvalidURL, ValueError) as error:
        raise ActionRefused(f"'{target.host}' cannot be called so: {error}") from None
    except (OSError, http.client.HTTPException) as error:
        what = (
            f"no answer in {seconds:g} s"
            if connection.is_cut or isinstance(error, TimeoutError)
            else str(error) or type(error).__name__
        )
        raise ActionFailed(f"'{target.host}' could not be called: {what}") from None
    finally:
        over.cancel()
        connection.close()
