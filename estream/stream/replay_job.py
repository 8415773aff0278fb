"""`estream replay` on Spark: runs the batch job and says how far it is."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import Progress

from estream.errors import EStreamError
from estream.stream.analyze import analyze
from estream.stream.pack import to_table
from estream.stream.rehearse import rehearsed
from estream.stream.replay import replay_frame
from estream.stream.runner import SPARK_ERRORS, Job, sentence
from estream.stream.session import for_detection, open_session
from estream.stream.source import Files
from estream.stream.source_formats import register
from estream.stream.sql_branch import Reader


def replay_tables(job: Job, inputs: Mapping[str, Path], conf: Mapping[str, str], folder: Path) -> list[pa.Table]:
    """The detections over bounded input, a table for each piece of the work."""
    with rehearsed(job.plan, job.checked):
        opened = open_session(job.settings, job.plan.name, conf, folder / "spark.log")
    session = for_detection(opened, job.settings.detection.shards)
    register(session)
    try:
        reader = Reader(session, job.checked, Files(job.channels, inputs))
        frame = replay_frame(job.plan, job.checked, reader, job.settings.detection.shards)
        with _progress(session):
            packed = frame.filter("kind = 'detections'").select("payload").toArrow()
    except SPARK_ERRORS as error:
        wrong = [problem for problem in analyze(job.checked, session) if problem.severity == "error"]
        raise EStreamError(wrong or f"{job.plan.name}: Spark says: {sentence(str(error))}") from error
    return [to_table(payload.as_py()) for payload in packed.column("payload")]


@contextmanager
def _progress(session: SparkSession) -> Iterator[None]:
    """On a terminal a bar of the tasks that are done."""
    console = Console(stderr=True)
    if not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    tracker = session.sparkContext.statusTracker()
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("replay", total=None)

        def look() -> None:
            while not ended.wait(0.3):
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
                done = sum(stage.numCompletedTasks for stage in stages if stage)
                bar.update(task, completed=done, total=sum(stage.numTasks for stage in stages if stage) or None)

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
