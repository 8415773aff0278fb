"""The command line on a terminal: its width, its colours, and output that cannot be written."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXPLAIN = [sys.executable, "-m", "estream", "explain", str(ROOT / "ceq_specs" / "card_fraud.yaml")]


def on_a_terminal(**environment: str) -> str:
    """What `explain` writes to a terminal."""
    reading, writing = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(
        EXPLAIN, cwd=ROOT, env={**variables, "TERM": "xterm", **environment}, stdout=writing, stderr=writing
    ) as process:
        os.close(writing)
        written = b"".join(iter(lambda: read(reading), b""))
    os.close(reading)
    assert process.returncode == 0
    return written.decode().replace("\r\n", "\n")


def read(terminal: int) -> bytes:
    """The next piece; nothing when the program has ended, which Linux tells by an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


@pytest.mark.parametrize("columns", ["50", "120"])
def test_lines_are_no_longer_than_the_terminal_is_wide(columns: str) -> None:
    written = on_a_terminal(COLUMNS=columns)
    assert max(map(len, plain(written).splitlines())) <= int(columns)


def test_a_terminal_gets_colours() -> None:
    assert "\x1b[" in on_a_terminal()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted(environment: dict[str, str]) -> None:
    assert "\x1b[" not in on_a_terminal(**environment)


def test_in_a_pipe_lines_are_whole_whatever_the_width() -> None:
    variables = {**os.environ, "COLUMNS": "20"}
    done = subprocess.run(EXPLAIN, cwd=ROOT, env=variables, capture_output=True, text=True, check=True)
    assert "HAVING approx_count_distinct(merchant) >= 5\n" in done.stdout
    assert "\x1b[" not in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_told_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(EXPLAIN, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "the output: No space left on device\n")
