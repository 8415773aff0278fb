"""What goes wrong while a query runs is told in one line with its cause, and what was taken before stays."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import SparkSession

from estream.app import RunOptions, job_of
from estream.errors import EStreamError
from estream.stream.runner import Runner, told_by_spark
from tests.stream.project import calls, faults, loaded, write_ceq, write_rows

WORKER = """\
[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure
Traceback (most recent call last):
  File "/somewhere/python/pyspark/worker.py", line 1, in main
{last}

\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:581) SQLSTATE: XXKST"""


def failing(batch: int, detections: pa.Table) -> None:
    """What cannot take detections."""
    raise EStreamError("the disk is full")


def test_what_takes_detections_and_fails_ends_the_run_with_its_own_words(spark: SparkSession, tmp_path: Path) -> None:
    write_rows(tmp_path / "calls", calls(20), 20)
    write_rows(tmp_path / "faults", faults([3]), 1)
    job = job_of(loaded(write_ceq(tmp_path)), tmp_path, {}, RunOptions(once=True))
    runner = Runner(job, spark, failing, lambda outcome: None)
    with pytest.raises(EStreamError) as raised:
        runner.wait(240)
    runner.stop()
    assert str(raised.value) == "phones: the disk is full"


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("estream.errors.EStreamError: channel 'cars' has no row 7", "phones: channel 'cars' has no row 7"),
        ("ZeroDivisionError: division by zero", "phones: Spark says: ZeroDivisionError: division by zero"),
    ],
)
def test_of_a_worker_only_the_last_line_of_its_traceback_is_told(tmp_path: Path, last: str, said: str) -> None:
    job = job_of(loaded(write_ceq(tmp_path)), tmp_path, {}, RunOptions())
    error = PySparkException(WORKER.format(last=last))
    assert str(told_by_spark(error, job, None)) == said


def test_that_spark_has_gone_is_told_with_where_its_words_are(tmp_path: Path) -> None:
    job = job_of(loaded(write_ceq(tmp_path)), tmp_path, {}, RunOptions())
    for error in (ConnectionRefusedError(111, "Connection refused"), Py4JNetworkError("Answer is empty")):
        said = str(told_by_spark(error, job, None))
        assert said.startswith("phones: Spark has ended")
        assert said.endswith(".estream/phones/spark.log")
