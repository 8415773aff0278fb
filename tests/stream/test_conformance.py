"""Conformance vectors through Spark: many in one batch job, and from a file through a live run."""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from estream.app import RunOptions, job_of
from estream.cli import cli
from estream.conformance import Shown, Vector, run_files, same, vectors
from estream.conformance_ceq import STREAM, Case, Joined
from estream.conformance_spark import case_of, on_spark
from estream.stream.display import Board
from estream.stream.runner import Runner
from estream.testing import Row
from tests.stream.project import loaded
from tests.stream.test_host import VECTORS

DELAY = 10_000_000
"""Of a stream that says nothing else, in microseconds."""


@pytest.mark.parametrize(("name", "step"), [("events_basic", 3), ("events_nested", 5), ("patterns", 8)])
def test_vectors_give_what_they_should_in_one_job(spark: SparkSession, tmp_path: Path, name: str, step: int) -> None:
    chosen = list(islice(vectors(VECTORS / f"{name}.jsonl"), 0, None, step))
    path = tmp_path / "some.jsonl"
    path.write_text("".join(f"{json.dumps(vector)}\n" for vector in chosen))
    assert str(run_files([path], on_spark({}))) == f"{len(chosen)} passed, 0 failed"


def test_a_vector_that_is_wrong_does_not_keep_the_others_from_being_run(spark: SparkSession, tmp_path: Path) -> None:
    right = next(vectors(VECTORS / "events_basic.jsonl"))
    wrong = {**right, "name": "wrong", "events": {"E1": {"when": "A ;"}}}
    path = tmp_path / "some.jsonl"
    path.write_text("".join(f"{json.dumps(vector)}\n" for vector in (wrong, right)))
    outcome = run_files([path], on_spark({}))
    assert outcome.passed == 1
    assert [failure.name for failure in outcome.failures] == ["wrong"]
    assert "E1" in outcome.failures[0].found


def test_spark_cuts_its_input_by_itself() -> None:
    result = CliRunner().invoke(cli, ["conformance", "--host", "spark", "--split", "2", "some.jsonl"])
    assert "--host process" in str(result.exception)


def up_to_the_end(vector: Vector) -> list[Shown]:
    """What a live run has found when the watermark has just passed the end of the input; timers are pending."""
    end = max(row["time"] for row in vector["input"])
    return [one for one in vector["expected"] if one["end"] <= end]


def test_twenty_vectors_from_a_file_through_a_live_run(spark: SparkSession, tmp_path: Path) -> None:
    every = [*vectors(VECTORS / "events_basic.jsonl"), *vectors(VECTORS / "events_nested.jsonl")]
    chosen = [vector for vector in every if up_to_the_end(vector)][::27][:20]
    assert len(chosen) == 20
    cases = Joined([case_of(vector) for vector in chosen])
    options = {"path": str(tmp_path / "rows"), "maxFilesPerTrigger": 1}
    document = cases.document({"format": "parquet", "options": options})
    rules = {f"on_{event}": {"on": event, "actions": [{"log": "seen"}]} for event in cases.observe}
    (tmp_path / "live.yaml").write_text(json.dumps({**document, "name": "live", "rules": rules}))
    write_parts(tmp_path / "rows", cases)
    found = cases.told(live(spark, tmp_path / "live.yaml"))
    pairs = zip(chosen, found, strict=True)
    assert [vector["name"] for vector, one in pairs if not same(one, up_to_the_end(vector))] == []


def write_parts(folder: Path, cases: Joined) -> None:
    """The rows in a few files, then one that is no event and lets the watermark pass the end."""
    folder.mkdir()
    table = cases.table().sort_by("row_time")
    for number in range(3):
        first, last = (table.num_rows * place // 3 for place in (number, number + 1))
        write_part(folder, number, table.slice(first, last - first))
    last_row = Row("none", cases.end + DELAY + 1, 0)
    closing = Joined([*cases.cases, Case({}, [last_row], [])])
    write_part(folder, 3, closing.table().slice(table.num_rows))


def write_part(folder: Path, number: int, rows: pa.Table) -> None:
    """A file that is read after those of lesser numbers."""
    path = folder / f"{number}.parquet"
    pq.write_table(rows, path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def live(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    """The detections of a run over what is there."""
    job = job_of(loaded(path), path.parent, {}, RunOptions(once=True))
    found: list[dict[str, Any]] = []
    runner = Runner(job, spark, lambda batch, table: found.extend(table.to_pylist()), Board(job.plan).note)
    try:
        assert runner.wait(240)
    finally:
        runner.stop()
    assert {stream.name for stream in job.plan.streams} == {STREAM}
    return found
