"""Both databases of the history: a file of SQLite, and a real PostgreSQL server that the tests start."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from estream.history.database import Database


def postgres_binary(name: str) -> str | None:
    """A program of PostgreSQL, on the path or where Debian puts it."""
    found = shutil.which(name)
    if found is not None:
        return found
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(versions[-1]) if versions else None


class Server:
    """A PostgreSQL server of its own, reached by TCP on loopback; it can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # PostgreSQL refuses to run as root: then it runs as the user of its package.
        self.user = "postgres" if os.geteuid() == 0 else getpass.getuser()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        if os.geteuid() == 0:
            account = pwd.getpwnam(self.user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        self._run("initdb", "-D", "data", "-U", "estream", "-A", "trust", "--no-sync", "-E", "UTF8")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://estream@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        binary = postgres_binary(program)
        assert binary is not None
        as_user = {"user": self.user, "group": self.user} if os.geteuid() == 0 else {}
        result = subprocess.run(
            [binary, *arguments], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, timeout=60, check=False, **as_user,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr.decode()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    if postgres_binary("initdb") is None:
        pytest.skip("PostgreSQL is not installed: the history is tested on SQLite only (apt-get install postgresql)")
    # Folders of pytest are closed to other users, and PostgreSQL may have to run as one.
    with tempfile.TemporaryDirectory(prefix="estream-postgres-") as folder:
        running = Server(Path(folder))
        yield running
        running.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An empty history, on each database."""
    if request.param == "sqlite":
        opened = Database(f"sqlite:///{tmp_path}/history.db")
    else:
        opened = Database(request.getfixturevalue("server").url)
        with opened.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
    yield opened
    opened.close()
