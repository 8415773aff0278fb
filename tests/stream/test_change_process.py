"""`estream mask`, `rule`, `apply` and Ctrl-C from the outside, on an `estream run` that goes on in another process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from estream.stream.channel import Channel

LONGEST = 280
CEQ = """\
version: 1
name: small
settings: {detection: {shards: 1}, stream: {trigger: 100 ms}}
streams:
  S:
    source: {channel: s}
    schema: {ts: timestamp, n: bigint, v: int}
    time: ts
    watermark: 1 s
    idle_after: 1 h
events:
  A: {on: S, mask: v > 3, id: [n]}
  EA: {when: A}
rules:
  Tell: {on: EA, actions: [{log: "A came"}]}
"""
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64()), ("v", pa.int32())])


def estream(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command, done."""
    command = [sys.executable, "-m", "estream", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LONGEST, check=False)


class Running:
    """`estream run` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._out, self.err = folder, folder / "out", folder / "err"
        self._channel = Channel(folder / ".estream/channels/s").create(SCHEMA)
        self._given = 0
        command = [sys.executable, "-m", "estream", "run", "small.yaml", "--format", "json", "--master", "local[1]"]
        with self._out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err)

    def give(self, *values: int) -> None:
        """Append rows with these values, a second apart, and one that lets time pass them."""
        rows = []
        for value in (*values, 0):
            self._given += 1
            moment = datetime(2026, 3, 1, 0, self._given // 60, self._given % 60, tzinfo=UTC)
            rows.append({"ts": moment, "n": self._given, "v": value})
        rows[-1]["ts"] = rows[-1]["ts"].replace(microsecond=500_000)
        self._given += 1
        self._channel.append(pa.Table.from_pylist(rows, schema=SCHEMA))

    def finds(self, count: int) -> list[int]:
        """The rows of the detections, once there are so many."""
        until = time.monotonic() + LONGEST
        while len(found := self._found()) < count:
            assert self.process.poll() is None, self.err.read_text()
            assert time.monotonic() < until, self.err.read_text()
            time.sleep(0.05)
        return found

    def _found(self) -> list[int]:
        lines: list[dict[str, Any]] = [json.loads(line) for line in self._out.read_text().splitlines()]
        return [line["constituents"][0]["id"] for line in lines]


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    (folder / "small.yaml").write_text(CEQ)
    run = Running(folder)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.wait()


def test_a_run_is_changed_from_other_processes_and_ended_by_a_signal(tmp_path: Path) -> None:
    with running(tmp_path) as run:
        run.give(5, 2, 9)
        assert run.finds(2) == [1, 3]

        done = estream(tmp_path, "mask", "A", "v > 6")
        assert (done.returncode, done.stderr) == (0, "")
        assert "  event A is changed\n" in done.stdout
        run.give(5, 7)
        assert run.finds(3) == [1, 3, 7]

        wrong = CEQ.replace("v > 3", "w > 3").replace("when: A", "when: B")
        (tmp_path / "small.yaml").write_text(wrong)
        refused = estream(tmp_path, "apply", "small.yaml")
        assert refused.returncode == 2
        assert "small.yaml:12:20: event 'A': " in refused.stderr
        assert "small.yaml:13:14: event 'EA': unknown event 'B'" in refused.stderr
        assert estream(tmp_path, "mask", "A", "v >").returncode == 2
        assert estream(tmp_path, "rule", "disable", "Tel").returncode == 2
        (tmp_path / "small.yaml").write_text(CEQ)
        run.give(4, 8)
        assert run.finds(4) == [1, 3, 7, 11]

        assert estream(tmp_path, "rule", "disable", "Tell").returncode == 0
        run.give(9)
        assert run.finds(5) == [1, 3, 7, 11, 14]

        changes = json.loads(estream(tmp_path, "changes", "--format", "json").stdout)
        assert [one["request"] for one in changes] == ["rule disable Tell", 'mask A "v > 6"']
        run.process.send_signal(signal.SIGINT)
        assert run.process.wait(LONGEST) == 0
        said = run.err.read_text()
        assert said.count("A came") == 4
        assert "Traceback" not in said


@pytest.mark.parametrize("words", [("mask", "A", "v > 6"), ("rule", "enable", "Tell"), ("apply", "small.yaml")])
def test_where_nothing_runs_that_is_said(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "small.yaml").write_text(CEQ)
    done = estream(tmp_path, *words)
    assert done.returncode == 2
    assert done.stderr.endswith("`estream run`\n")
    assert "Traceback" not in done.stderr
