"""The source `http`: a receiver that keeps posted rows in a channel before it says so; Spark reads the channel."""

from __future__ import annotations

import ipaddress
import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from estream.errors import EStreamError
from estream.spec.types import DataType
from estream.stream.channel import Channel
from estream.stream.channel_schema import arrow_schema
from estream.stream.source_http_server import Limits, Server
from estream.stream.source_options import OptionError, SourceOptions

FORMAT: Final = "http"
_OPTIONS: Final = ("host", "port", "path", "token", "open", "max_bytes", "max_requests", "backlog", "timeout")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Where the receiver listens, who may post, and how much."""

    host: str
    port: int
    """0: any that is free."""
    path: str
    token: str
    """Empty: the receiver makes one and keeps it in a file beside the channel."""
    open: bool
    """No token is asked for; only for the machine itself."""
    limits: Limits

    @classmethod
    def of(cls, options: Mapping[str, str], stream: str) -> HttpOptions:
        """The options as they are written; rows of a stream are posted to `/STREAM` unless another path is given."""
        given = SourceOptions(FORMAT, options, _OPTIONS)
        made = cls(
            given.text("host", "127.0.0.1"),
            given.whole("port", 8750),
            "/" + given.text("path", stream).strip("/"),
            given.text("token", ""),
            given.flag("open"),
            Limits(
                given.whole("max_bytes", 8 * 1024 * 1024, 1),
                given.whole("max_requests", 32, 1),
                given.whole("backlog", 1_000_000, 1),
                given.duration("timeout", "10 s") / 1_000_000,
            ),
        )
        if made.port > 65_535:
            raise given.wrong("port", str(made.port), "at most 65535")
        if made.open and not _is_loopback(made.host):
            raise OptionError("open", f"source '{FORMAT}': 'open' is for this machine only; {made.host} needs a token")
        return made


class Receiver:
    """Listens from `start` to `stop`; also a context manager."""

    def __init__(self, options: HttpOptions, channel: Channel) -> None:
        self._options, self.channel = options, channel
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def token_file(self) -> Path:
        """Where the token is kept that the receiver made itself."""
        return self.channel.path / "token"

    @property
    def url(self) -> str:
        """Where rows are posted to, once it has started."""
        port = self._server.server_port if self._server else self._options.port
        host = f"[{self._options.host}]" if ":" in self._options.host else self._options.host
        return f"http://{host}:{port}{self._options.path}"

    def start(self) -> Self:
        """Begin to listen; EStreamError tells why it cannot."""
        address = (self._options.host, self._options.port)
        try:
            self._server = Server(address, self._options.path, self._token(), self._options.limits, self.channel)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise EStreamError(f"source '{FORMAT}': cannot listen at {address[0]}:{address[1]}: {reason}") from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name=f"http {self.channel.name}"
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening; what has been acknowledged is in the channel."""
        if self._server is not None and self._thread is not None:
            self._server.stop()
            self._thread.join()
            self._server = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _token(self) -> str:
        if self._options.open:
            return ""
        if self._options.token:
            return self._options.token
        if not self.token_file.exists():
            descriptor = os.open(self.token_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(32))
        return self.token_file.read_text()


def http_channel(stream: str) -> str:
    """The name of the channel behind a stream's receiver; no user can give a channel this name."""
    return f"http.{stream}"


def receiver(
    stream: str, columns: Mapping[str, DataType], time: str, options: Mapping[str, str], folder: Path
) -> Receiver:
    """The receiver of a stream, over a channel in the folder of channels; a row without a time gets its arrival's."""
    schema: pa.Schema = arrow_schema(columns)
    channel = Channel(folder / http_channel(stream)).create(schema, time)
    return Receiver(HttpOptions.of(options, stream), channel)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
