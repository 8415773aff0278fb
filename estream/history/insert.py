"""The `sql` action: a row into a table of any database that SQLAlchemy speaks to."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, MetaData, Table, create_engine, insert
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, IntegrityError, NoSuchModuleError, NoSuchTableError, SQLAlchemyError

from estream.rule.failure import ActionFailed, ActionRefused
from estream.spec.model import SqlInsert

KEY = "idempotency_key"
"""A column of this name gets the key of the firing: with a unique index no row is inserted twice."""


class Inserter:
    """Databases that actions insert into, each opened once."""

    def __init__(self) -> None:
        self._engines: dict[str, Engine] = {}
        self._tables: dict[tuple[str, str], Table] = {}
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, str], threading.Lock] = {}

    def insert(self, spec: SqlInsert, row: Mapping[str, Any], key: str) -> None:
        """Insert the row; a row with the same key that is there already counts as inserted."""
        try:
            engine, table = self._opened(str(spec.url), str(spec.table))
            unknown = [name for name in row if name not in table.c]
            if unknown:
                there = ", ".join(table.c.keys())
                raise ActionRefused(f"table '{spec.table}' has no {', '.join(unknown)}; it has {there}")
            keyed = {**row, KEY: key} if KEY in table.c and KEY not in row else dict(row)
            with engine.begin() as connection:
                connection.execute(insert(table), [keyed])
        except IntegrityError as error:
            if KEY not in str(error.orig):
                raise ActionRefused(f"table '{spec.table}' refuses the row: {_said(error)}") from None
        except NoSuchTableError:
            raise ActionRefused(f"there is no table '{spec.table}' in the database") from None
        except (NoSuchModuleError, ImportError) as error:
            raise ActionRefused(f"the database cannot be spoken to: {error}") from None
        except DBAPIError as error:
            raise ActionFailed(f"table '{spec.table}': {_said(error)}") from None
        except SQLAlchemyError as error:
            raise ActionRefused(f"table '{spec.table}': {' '.join(str(error).split())}") from None

    def _opened(self, url: str, name: str) -> tuple[Engine, Table]:
        with self._lock:
            if url not in self._engines:
                made = make_url(url)
                driver = "postgresql+psycopg" if made.drivername == "postgresql" else made.drivername
                self._engines[url] = create_engine(made.set(drivername=driver), pool_pre_ping=True)
            engine = self._engines[url]
            lock = self._locks.setdefault((url, name), threading.Lock())
        # The table is read from the database: one that does not answer must not keep others waiting.
        with lock:
            if (url, name) not in self._tables:
                schema, _, bare = name.rpartition(".")
                self._tables[url, name] = Table(bare, MetaData(), schema=schema or None, autoload_with=engine)
            return engine, self._tables[url, name]

    def close(self) -> None:
        """Close every connection."""
        for engine in self._engines.values():
            engine.dispose()


def _said(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())
