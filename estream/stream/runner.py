"""Runs a plan on Spark: starts the query, hands every micro-batch on, stops it in good order."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from estream.errors import EStreamError
from estream.plan.model import Plan
from estream.settings import Settings
from estream.spec.checked import Checked
from estream.stream.analyze import analyze
from estream.stream.channel_dead_letter import DeadLetter, bury, dead_letters
from estream.stream.checkpoint import compare, manifest_of, read_manifest, write_manifest
from estream.stream.clock import write_beats
from estream.stream.emission import REFUSED
from estream.stream.future import derived
from estream.stream.late import keep_late
from estream.stream.layout import timings_of
from estream.stream.publish import open_publications, publish
from estream.stream.query import detection_frame
from estream.stream.session import for_detection
from estream.stream.sink import Outcome, Take, unpack, write_whole
from estream.stream.source import Files
from estream.stream.source_formats import playback_speeds, receivers, register, said_by_source
from estream.stream.sql_branch import Reader
from estream.stream.watermark import Progress, beats

log = logging.getLogger(__name__)

_COMMITTED = 10.0
"""Seconds that Spark has to commit a micro-batch that was handed on, before it is stopped."""
_LOOK = 0.01

SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)
"""What Spark raises for a user's mistake or its own, and what is raised where it is gone."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is run, and where it keeps what it needs."""

    plan: Plan
    checked: Checked
    settings: Settings
    checkpoint: Path
    """The folder of this plan's checkpoint."""
    channels: Path
    once: bool = False
    """Take what is there and end."""


def refuse_changes(job: Job) -> None:
    """Say in one go all that keeps the plan from going on from its checkpoint."""
    changes = compare(read_manifest(job.checkpoint), manifest_of(job.plan, job.checked, job.settings.detection.shards))
    if changes.refused:
        reasons = "".join(f"\n  - {reason}" for reason in changes.refused)
        raise EStreamError(
            f"{job.plan.name} cannot go on from the checkpoint {job.checkpoint}:{reasons}\n"
            "Undo the change, or start anew with another --checkpoint."
        )


class Runner:
    """A query that runs. `take` gets the detections of each micro-batch, `watch` everything it gave."""

    def __init__(self, job: Job, session: SparkSession, take: Take, watch: Callable[[Outcome], None]) -> None:
        refuse_changes(job)
        open_publications(job.plan, job.channels)
        self.job, self._take, self._watch = job, take, watch
        self._timings = timings_of(job.plan, playback_speeds(job.checked), derived(job.checked))
        self._between = threading.Lock()
        self._is_over = False
        self._last: int | None = None
        """The micro-batch that was handed on last."""
        self._open = ExitStack()
        job.checkpoint.mkdir(parents=True, exist_ok=True)
        self._beats = job.checkpoint / "beats.json"
        self._query = self._start(for_detection(session, job.settings.detection.shards))

    def _start(self, session: SparkSession) -> StreamingQuery:
        job, shards = self.job, self.job.settings.detection.shards
        register(session)
        try:
            for receiver in receivers(job.checked.queries.values(), job.channels):
                self._open.enter_context(receiver)
            reader = Reader(session, job.checked, Files(job.channels), str(self._beats.resolve()))
            frame = detection_frame(job.plan, job.checked, reader, shards)
            writer = frame.writeStream.queryName(job.plan.name).foreachBatch(self._each).outputMode("append")
            writer = writer.option("checkpointLocation", str((job.checkpoint / "spark").resolve()))
            interval = f"{job.settings.stream.trigger.microseconds // 1000} milliseconds"
            writer = writer.trigger(availableNow=True) if job.once else writer.trigger(processingTime=interval)
            write_manifest(job.checkpoint, manifest_of(job.plan, job.checked, shards))
            return writer.start()
        except (*SPARK_ERRORS, EStreamError) as error:
            self._open.close()
            raise error if isinstance(error, EStreamError) else told_by_spark(error, job, session) from error

    def _each(self, frame: DataFrame, batch: int) -> None:
        """One micro-batch; it may come again after a crash."""
        with self._between:
            if self._is_over:
                # It must not be committed: it is run again when the query starts the next time.
                raise EStreamError("the run was stopped")
            outcome = unpack(batch, frame.toArrow())
            self._bury(outcome)
            keep_late(self.job.channels, (table for _, table in outcome.late), self.job.plan.name, batch)
            publish(self.job.plan, self.job.channels, outcome)
            self._take(batch, outcome.detections)
            if outcome.progress is not None:
                write_beats(self._beats, beats(Progress(**outcome.progress), self._timings))
                write_whole(self.job.checkpoint / "progress.json", json.dumps(outcome.progress).encode())
            self._watch(outcome)
            self._last = batch

    def _bury(self, outcome: Outcome) -> None:
        letters = [
            DeadLetter(source, told.get("position", f"batch {outcome.batch}"), told["reason"], told["record"])
            for source, table in outcome.dead
            for told in map(json.loads, table.column(REFUSED).to_pylist())
        ]
        if letters:
            bury(dead_letters(self.job.channels), letters, self.job.plan.name, outcome.batch)

    @property
    def figures(self) -> list[tuple[int, float]]:
        """Rows and seconds of the latest micro-batches, as Spark measured them."""
        recent = self._query.recentProgress
        return [(one.numInputRows, one.durationMs.get("triggerExecution", 0) / 1000) for one in recent]

    @property
    def is_running(self) -> bool:
        """Whether it goes on."""
        return bool(self._query.isActive)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it ends, at most so long; true if it has. Raises what ended it, in EStream's words."""
        try:
            ended = self._query.awaitTermination(seconds)  # type: ignore[arg-type]
        except SPARK_ERRORS as error:
            self._open.close()
            raise told_by_spark(error, self.job, None) from error
        return seconds is None or bool(ended)

    def stop(self) -> None:
        """End after the micro-batch that is under way, which is committed first."""
        try:
            self._finish()
            self._query.stop()
        except SPARK_ERRORS as error:
            log.debug("Spark was gone before it was stopped", exc_info=error)
        finally:
            self._open.close()

    def _finish(self) -> None:
        """Wait until what was handed on is committed; nothing is handed on from then on."""
        until = time.monotonic() + _COMMITTED
        while not self._is_over:
            with self._between:
                # Spark waits for a call that is under way when it stops: so the lock is not held then.
                self._is_over = self._is_committed or not self.is_running or time.monotonic() > until
            time.sleep(0 if self._is_over else _LOOK)

    def swap(self, change: Callable[[], Take]) -> None:
        """Let something else take detections from the next micro-batch on; `change` is called between two of them."""
        with self._between:
            self._take = change()

    @property
    def next_batch(self) -> int:
        """The number of the first micro-batch that is not committed."""
        return self._last_in("commits") + 1

    @property
    def planned(self) -> int:
        """The number of the last micro-batch that Spark has planned; one that is not committed is run first."""
        return self._last_in("offsets")

    def _last_in(self, log: str) -> int:
        paths = (self.job.checkpoint / "spark" / log).glob("[0-9]*")
        return max((int(path.name) for path in paths if path.name.isdecimal()), default=-1)

    @property
    def taken(self) -> int | None:
        """The number of the micro-batch that was handed on last, by this runner."""
        return self._last

    @property
    def _is_committed(self) -> bool:
        return self._last is None or (self.job.checkpoint / "spark" / "commits" / str(self._last)).exists()


def told_by_spark(error: Exception, job: Job, session: SparkSession | None) -> EStreamError:
    """An error of Spark at the place of the query it is about, if there is one, else in one sentence."""
    log.debug("Spark failed", exc_info=error)
    if isinstance(error, Py4JNetworkError | ConnectionError):
        words = f"{job.settings.paths.state}/{job.plan.name}/spark.log"
        return EStreamError(f"{job.plan.name}: Spark has ended, too little memory perhaps; its words are in {words}")
    said = said_by_source(error)
    if said is not None:
        return EStreamError(f"{job.plan.name}: {said}")
    # A session of its own: that of detection refuses sources without a name.
    problems = analyze(job.checked, session.newSession()) if session is not None else []
    wrong = [problem for problem in problems if problem.severity == "error"]
    if wrong:
        return EStreamError(wrong)
    return EStreamError(f"{job.plan.name}: Spark says: {sentence(str(error))}")


def sentence(text: str) -> str:
    """The one line of Spark's words that says what is wrong: of a worker's traceback the last, else the first.

    Where our call into Spark failed, it is what Spark says was the cause of it all.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    inner = [line for line in lines if line.startswith(("estream.", "pyspark.errors.")) or "Error: " in line[:60]]
    chosen = inner[-1] if inner else lines[0] if lines else "nothing"
    causes = re.findall(r"^Caused by: [\w.$]+: (.+)$", text, re.MULTILINE)
    if chosen.startswith("py4j.") and causes:
        chosen = causes[-1]
    return chosen.partition(" SQLSTATE")[0].rstrip(".")
