"""The database of the history: how it is opened, kept up to date, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from estream.errors import EStreamError
from estream.rule.store import StoreAway, StoreStopped

BUSY: Final = 10.0
"""Seconds to wait for another writer of a SQLite file."""
_PRAGMAS: Final = (
    "journal_mode=WAL", "synchronous=FULL", "temp_store=MEMORY", "cache_size=-32000", "case_sensitive_like=ON",
)  # fmt: skip
_FULL: Final = ("SQLITE_FULL", "53100")
_AWAY: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")


class Database:
    """An open database. What it raises is StoreAway, StoreStopped or EStreamError, never an error of the driver."""

    def __init__(self, url: str, root: Path = Path()) -> None:
        """`url` is SQLAlchemy's; the file of a relative SQLite URL is below `root`."""
        self.url = _url(url, root)
        self.engine = _engine(self.url)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of SQLite."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def exists(self) -> bool:
        """Whether there is one: a file of SQLite is made by whoever writes first."""
        return not self.is_sqlite or Path(str(self.url.database)).is_file()

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return self.url.render_as_string(hide_password=True)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction, committed at the end; StoreAway and StoreStopped say why it failed."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise self.translated(error) from None

    def upgrade(self) -> None:
        """Make the tables, or bring those of an earlier version up to date."""
        from estream.history.migrate import upgrade

        if self.is_sqlite:
            self._make_folder()
        with self.begin() as connection:
            upgrade(connection)

    def _make_folder(self) -> None:
        folder = Path(str(self.url.database)).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = (error.strerror or "it cannot be made").lower()
            raise EStreamError(f"history.url: the folder {folder}: {reason}") from None

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def translated(self, error: DBAPIError) -> StoreAway | StoreStopped:
        """What an error of the driver means."""
        said = " ".join(str(error.orig).split())
        code = _code(error.orig)
        if code in _FULL:
            way = "make room and start again: nothing that was recorded is lost, and what was not is taken again"
            return StoreStopped(f"{self.shown}: there is no room left for the history; {way}")
        if any(code.startswith(one) for one in _AWAY) or (not self.is_sqlite and _may_come_back(code)):
            return StoreAway(said)
        return StoreStopped(f"{self.shown}: the history cannot be written or read: {said}")


def _code(error: Any) -> str:
    return str(getattr(error, "sqlite_errorname", None) or getattr(error, "sqlstate", None) or "")


def _may_come_back(code: str) -> bool:
    """PostgreSQL: no answer at all, connection trouble, a server that stops or has no resources, a lost race."""
    return code == "" or code[:2] in ("08", "40", "53", "57")


def _url(text: str, root: Path) -> URL:
    try:
        url = make_url(text)
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError):
        raise EStreamError(
            "history.url is no database; write sqlite:///file.db or postgresql://user@host/name"
        ) from None
    backend = url.get_backend_name()
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise EStreamError(f"history.url is a database of {backend}; use sqlite or postgresql")
    if url.database in (None, "", ":memory:"):
        raise EStreamError("history.url names no file; write sqlite:///file.db")
    return url.set(database=str(root / str(url.database)))


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 5})
    engine = create_engine(url, connect_args={"timeout": BUSY})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, record: Any) -> None:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")

    return engine
