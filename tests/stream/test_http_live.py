"""Rows posted by http come through a live run, joined with a table; wrong ones are refused, or are dead letters."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from estream.app import RunOptions, job_of
from estream.errors import EStreamError
from estream.stream.change_live import Live
from estream.stream.display import Board
from estream.stream.runner import Job, Runner
from estream.stream.sink import FileSink, Take
from tests.stream.project import channel_rows, loaded, stamp, written

LONGEST = 200
CEQ = """\
version: 1
name: posted
settings: {{detection: {{shards: 2}}}}
streams:
  Calls:
    source: {{format: http, options: {{port: {port}, token: secret}}}}
    schema: {{ts: timestamp, call: bigint, phone: int, seconds: double}}
    time: ts
    watermark: 1 second
    idle_after: 1 second
tables:
  People:
    source: {{format: csv, options: {{path: "{folder}/people", header: true}}}}
    schema: {{phone: int, person: string}}
    refresh: 1 second
queries:
  Named: {{sql: "SELECT c.ts, c.call, c.seconds, p.person FROM Calls c JOIN People p ON c.phone = p.phone"}}
events:
  Short: {{on: Named, mask: seconds < 20, id: [call]}}
  Lengthy: {{on: Named, mask: seconds > 60, id: [call]}}
  Any: {{on: Calls, id: [call]}}
  Returned: {{when: Short ; Lengthy, context: chronicle, partition_by: person}}
  Quiet: {{when: "absent(Any, Any, 2 seconds)", context: continuous}}
rules:
  Tell: {{on: Returned, actions: [{{log: "returned"}}]}}
  Ask: {{on: Quiet, actions: [{{log: "quiet"}}]}}
"""
PEOPLE = "phone,person\n1,Ann\n2,Ann\n3,Bob\n"


def call(number: int, second: float, phone: int, seconds: float) -> dict[str, Any]:
    return {"ts": stamp(second), "call": number, "phone": phone, "seconds": seconds}


ROWS = [call(1, 0, 1, 5), call(2, 1, 3, 90), call(3, 1.5, 9, 90), call(4, 2, 2, 90)]
LATER = [call(6, 90_000, 3, 5), call(7, 90_001, 9, 90)]
"""A day after the others, which the clock cannot have passed."""
AHEAD = {**call(5, 3, 1, 5), "ts": "2126-03-01T00:00:00Z"}


def project(folder: Path) -> tuple[Job, int]:
    """The job, and the port it listens at."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    (folder / "people").mkdir()
    (folder / "people/first.csv").write_text(PEOPLE)
    (folder / "posted.yaml").write_text(CEQ.format(folder=folder, port=port))
    return job_of(loaded(folder / "posted.yaml"), folder, {}, RunOptions()), port


def post(port: int, rows: Sequence[dict[str, Any]]) -> int:
    """The status that the receiver answers with."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Content-Type": "application/x-ndjson", "Authorization": "Bearer secret"}
    connection.request("POST", "/Calls", "".join(f"{json.dumps(row)}\n" for row in rows), headers)
    status = connection.getresponse().status
    connection.close()
    return status


@contextmanager
def going(job: Job, spark: SparkSession, board: Board, folder: Path) -> Iterator[Live]:
    """A run as `estream run` has it."""

    @contextmanager
    def taking(job: Job) -> Iterator[Take]:
        yield FileSink(folder, job.plan).take

    live = Live(job, spark, lambda job, take: Runner(job, spark, take, board.note), taking)
    live.begin()
    try:
        yield live
    finally:
        live.stop()


def test_posted_rows_are_joined_with_a_table_which_is_read_anew(spark: SparkSession, tmp_path: Path) -> None:
    job, port = project(tmp_path)
    board, folder = Board(job.plan), tmp_path / "detections"

    def wait_for(count: int, live: Live) -> None:
        until = time.monotonic() + LONGEST
        while len(written(folder)) < count and time.monotonic() < until:
            assert not live.wait(0.25)

    with going(job, spark, board, folder) as live:
        with pytest.raises(EStreamError, match="cannot listen at"):
            Runner(job, spark, lambda batch, table: None, lambda outcome: None)
        assert post(port, [{**ROWS[0], "call": "none"}]) == 400
        assert post(port, [*ROWS, AHEAD]) == 200
        wait_for(2, live)
        (tmp_path / "people/later.csv").write_text("phone,person\n9,Bob\n")
        assert live.renew_tables()
        assert not live.renew_tables()
        assert post(port, LATER) == 200
        wait_for(4, live)
    told = [(one["event"], [part["id"] for part in one["constituents"]]) for one in written(folder)]
    assert sorted(told) == [("Quiet", [4]), ("Quiet", [7]), ("Returned", [1, 4]), ("Returned", [6, 7])]
    assert [(row["source"], row["position"]) for row in channel_rows(tmp_path, "dead_letters")] == [
        ("Calls", "offset 4")
    ]
    assert board.rows["Calls"] == len(ROWS) + len(LATER) + 1
    with pytest.raises(ConnectionRefusedError):
        post(port, ROWS)
