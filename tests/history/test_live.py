"""Rules of a live run on Spark: each detection fires once, also when the whole stream comes again."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession
from sqlalchemy import text

from estream.app import RunOptions, job_of
from estream.app_rules import rules_at_work
from estream.history.database import Database
from estream.rule.detection import Detection
from estream.stream.display import Board
from estream.stream.runner import Runner
from tests.stream.project import calls, faults, loaded, write_ceq, write_rows


def test_every_detection_fires_its_rules_once_even_if_the_stream_comes_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_rows(tmp_path / "calls", calls(90), 45)
    write_rows(tmp_path / "faults", faults(range(3, 80, 9)), 4)
    path, told = write_ceq(tmp_path), []

    def note(detection: Detection) -> None:
        told.append((detection.id, detection.Short.caller == detection.Lengthy.caller))

    job = job_of(loaded(path), tmp_path, {}, RunOptions(once=True))
    board = Board(job.plan)
    for _ in range(2):
        shutil.rmtree(job.checkpoint, ignore_errors=True)
        with rules_at_work(job.checked, job.plan, job.settings, tmp_path, job.channels, {"Note": [note]}) as agenda:
            runner = Runner(job, spark, agenda.take, board.note)
            try:
                assert runner.wait(240)
            finally:
                runner.stop()
    database = Database(job.settings.history.url, tmp_path)
    with database.begin() as connection:
        counted = text("SELECT state, count(*) AS number FROM firings GROUP BY state")
        states = {row.state: row.number for row in connection.execute(counted)}
        detections = connection.execute(text("SELECT count(*) FROM detections")).scalar()
    database.close()
    assert states == {"done": detections}
    assert len(told) == len(set(told)) == board.detected["Returned"] // 2
    assert all(same for _, same in told)
