"""Who runs a CEQ file: one process at a time, for two that share a history would run each other's firings.

The lock belongs to the process and goes with it, however it ends: of a SQLite history it is a lock on a file beside it,
of PostgreSQL an advisory lock of a connection. The row in the history tells others who it is, and stops a process that
lost its connection, and with it the lock, to another one.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Final, Protocol

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import DBAPIError

from estream.history.database import Database
from estream.history.tables import owners
from estream.rule.detection import moment
from estream.rule.store import StoreAway, StoreStopped

PATIENCE: Final = 2.0
"""Seconds to wait for a process that is just ending."""
_LOOK: Final = 0.05
_KEEPALIVE: Final = ("tcp_keepalives_idle = 10", "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3")
"""A machine that is gone without a word keeps the lock no longer than some 25 seconds."""


class _Lock(Protocol):
    def try_take(self) -> bool:
        """Take the lock if nobody has it, or see that it is still held."""

    def release(self) -> None:
        """Let it go."""


class _FileLock:
    """A lock on a file. A process that a callback forks does not hold it; threads of one process do not share it."""

    _held: Final[set[Path]] = set()
    _guard: Final = threading.Lock()

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._descriptor: int | None = None

    def try_take(self) -> bool:
        if self._descriptor is not None:
            return True
        with self._guard:
            # Within one process such a lock is always given, and closing the file anywhere would end it.
            if self._path in self._held:
                return False
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                return False
            self._held.add(self._path)
            self._descriptor = descriptor
        return True

    def release(self) -> None:
        with self._guard:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
                self._held.discard(self._path)


class _ServerLock:
    """An advisory lock of PostgreSQL, which its connection holds."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._key = int.from_bytes(hashlib.blake2b(f"estream {name}".encode(), digest_size=8).digest(), signed=True)
        self._connection: Connection | None = None

    def try_take(self) -> bool:
        try:
            if self._connection is not None:
                self._connection.exec_driver_sql("SELECT 1")
                return True
            return self._connect()
        except DBAPIError as error:
            self._forget()
            raise self._database.translated(error) from None

    def _connect(self) -> bool:
        connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            for setting in _KEEPALIVE:
                connection.exec_driver_sql(f"SET {setting}")
            taken = bool(connection.exec_driver_sql("SELECT pg_try_advisory_lock(%s)", (self._key,)).scalar())
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        if taken:
            self._connection = connection
        else:
            connection.close()
        return taken

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # The connection must not go back to the others: with it goes the lock.
            connection.invalidate()
            connection.close()

    def release(self) -> None:
        if self._connection is not None:
            # Said, not left to the end of the connection, which the server notices a moment later.
            with contextlib.suppress(DBAPIError):
                self._connection.exec_driver_sql("SELECT pg_advisory_unlock(%s)", (self._key,))
        self._forget()


class Owner:
    """This process as the one that runs a CEQ file."""

    def __init__(self, database: Database, ceq: str) -> None:
        self._database, self._ceq = database, ceq
        self._token = uuid.uuid4().hex
        self._lock: _Lock = (
            _FileLock(Path(f"{database.url.database}.{ceq}.lock")) if database.is_sqlite else _ServerLock(database, ceq)
        )

    def take(self, since: int) -> None:
        """Become the one, since a time in microseconds; StoreStopped if another process is."""
        until = time.monotonic() + PATIENCE
        while not self._try():
            if time.monotonic() > until:
                raise StoreStopped(self._told(self._other()))
            time.sleep(_LOOK)
        row = {"ceq": self._ceq, "token": self._token, "host": socket.gethostname(), "pid": os.getpid(), "since": since}
        with self._database.begin() as connection:
            connection.execute(delete(owners).where(owners.c.ceq == self._ceq))
            connection.execute(insert(owners), [row])

    def _try(self) -> bool:
        try:
            return self._lock.try_take()
        except OSError as error:
            said = (error.strerror or "it cannot be made").lower()
            raise StoreStopped(f"{self._database.shown}: the file of its lock: {said}") from None

    def hold(self) -> None:
        """See that the lock is held; after the database was away, take it again."""
        if not self._lock.try_take():
            other = self._other()
            if other is not None and other.token != self._token:
                raise StoreStopped(self._told(other))
            raise StoreAway("the lock of an earlier connection is still held")

    def require(self, connection: Connection) -> None:
        """Refuse to record anything after another process has begun to run the file."""
        asked = select(owners).where(owners.c.ceq == self._ceq).with_for_update(read=True)
        found = connection.execute(asked).one_or_none()
        if found is None or found.token != self._token:
            raise StoreStopped(self._told(found))

    def _other(self) -> Any:
        with self._database.begin() as connection:
            return connection.execute(select(owners).where(owners.c.ceq == self._ceq)).one_or_none()

    def _told(self, other: Any) -> str:
        who = "" if other is None else f", by process {other.pid} on {other.host} since {moment(other.since):%FT%TZ}"
        return (
            f"{self._database.shown}: '{self._ceq}' runs already with this history{who}; "
            "stop it, or give this one another name or another history.url"
        )

    def close(self) -> None:
        """Let others run the file."""
        self._lock.release()
