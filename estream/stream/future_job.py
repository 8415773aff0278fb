"""A future query at work: a Spark query of its own, with a checkpoint of its own, that writes to its channel."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from estream.errors import EStreamError
from estream.spec.checked import Checked
from estream.spec.future import Span
from estream.stream.future import future_channel, lateness, with_beats
from estream.stream.runner import SPARK_ERRORS, Job, sentence
from estream.stream.session import for_detection
from estream.stream.source import Files
from estream.stream.source_formats import register
from estream.stream.sql_branch import Reader, sql_frame
from estream.stream.watermark import OVER

GRACE = 3_600_000_000
"""How far past its stop the time of a query may go with state left: what has no end does not keep it running."""


@dataclass(frozen=True, slots=True)
class Future:
    """A query that sees the rows of a span."""

    job: Job
    """Of the file it belongs to."""
    checked: Checked
    """The file with the query itself in it, its span resolved."""
    query: str
    channel: str
    span: Span

    @property
    def checkpoint(self) -> Path:
        """Where its state is kept."""
        return self.job.checkpoint / "future" / self.channel

    def promise(self) -> None:
        """Say that nothing before its start will come, so that time goes on until then."""
        if self.span.start is not None:
            self.beat(self.span.start, "promise")

    def end(self) -> None:
        """Say that nothing more will come, and put the state away."""
        self.beat(OVER, "end")
        if self.checkpoint.exists():
            archive = self.job.checkpoint / "archive" / self.channel
            shutil.rmtree(archive, ignore_errors=True)
            archive.parent.mkdir(parents=True, exist_ok=True)
            self.checkpoint.rename(archive)

    def append(self, rows: pa.Table, beats: list[int], writer: str, version: int) -> None:
        """Write rows and beats to the channel; what a writer repeats is not added again."""
        query = self.checked.queries[self.query]
        channel = future_channel(self.job.channels / self.channel, query)
        # Who reads the channel takes its greatest time for that much less.
        late = lateness(self.checked)
        shifted = [beat if beat >= OVER else beat + late for beat in beats]
        whole = with_beats(rows, channel.schema, query.time or "", shifted)
        if whole.num_rows:
            channel.append(whole, writer=f"{self.job.plan.name} {writer}", version=version)

    def beat(self, time: int, writer: str, version: int = 0) -> None:
        """Say that nothing before a time will come."""
        schema = future_channel(self.job.channels / self.channel, self.checked.queries[self.query]).schema
        self.append(schema.empty_table().drop_columns([schema.names[-1]]), [time], writer, version)


class FutureRunner:
    """A future query that runs. It goes on from its checkpoint, and is over when all it will ever give is written."""

    def __init__(self, future: Future, session: SparkSession) -> None:
        self.future = future
        job = future.job
        own = for_detection(session, job.settings.detection.shards)
        register(own)
        reader = Reader(own, future.checked, Files(job.channels), str((job.checkpoint / "beats.json").resolve()))
        self._query: StreamingQuery | None = None
        try:
            frame = sql_frame(future.checked, future.query, reader)
            writer = frame.writeStream.queryName(f"{job.plan.name} {future.query}").foreachBatch(self._each)
            writer = writer.option("checkpointLocation", str((future.checkpoint / "spark").resolve()))
            interval = f"{job.settings.stream.trigger.microseconds // 1000} milliseconds"
            writer = writer.trigger(availableNow=True) if job.once else writer.trigger(processingTime=interval)
            self._query = writer.outputMode("append").start()
        except SPARK_ERRORS as error:
            raise self._told(error) from error

    def _each(self, frame: DataFrame, batch: int) -> None:
        reached = self.reached
        least = self.future.span.start
        # Spark begins at 1970, which says nothing.
        beats = [max(reached, least or reached)] if reached else []
        self.future.append(frame.toArrow(), beats, self.future.query, batch)

    @property
    def reached(self) -> int | None:
        """The watermark of the next micro-batch, which Spark writes with each commit; None before the first."""
        return self._committed[1]

    @property
    def is_over(self) -> bool:
        """Whether it has given all the rows of its span."""
        stop, (batch, reached) = self.future.span.stop, self._committed
        if stop is None or reached is None or reached < stop:
            return False
        return reached >= stop + GRACE or not self._has_state(batch)

    def _has_state(self, batch: int) -> bool:
        """Whether rows may wait in Spark's state after a micro-batch; what is not known yet may be."""
        if not (self.future.checkpoint / "spark" / "state").exists():
            return False
        progress = self._progress
        operators = progress.get("stateOperators", [])
        # Spark tells it after the commit: what it has told may be of the micro-batch before.
        is_told = bool(operators) and int(progress["batchId"]) >= batch
        return not is_told or any(operator["numRowsTotal"] for operator in operators)

    @property
    def _committed(self) -> tuple[int, int | None]:
        """The number of the last micro-batch that is committed, and the watermark after it."""
        commits = {int(path.name): path for path in (self.future.checkpoint / "spark" / "commits").glob("[0-9]*")}
        if not commits:
            return -1, None
        last = max(commits)
        facts = json.loads(commits[last].read_text(encoding="utf-8").splitlines()[-1])
        return last, int(facts["nextBatchWatermarkMs"]) * 1000

    def wait(self, seconds: float) -> bool:
        """Wait until it ends, at most so long; true if it has. Raises what ended it, in EStream's words."""
        if self._query is None:
            return True
        try:
            return bool(self._query.awaitTermination(seconds))  # type: ignore[arg-type]
        except SPARK_ERRORS as error:
            raise self._told(error) from error

    def require_well(self) -> None:
        """Raise what ended it, if something did, in EStream's words."""
        failure = None if self._query is None else self._query.exception()
        if failure is not None:
            raise self._told(failure)

    def _told(self, error: Exception) -> EStreamError:
        return EStreamError(f"query '{self.future.query}': Spark says: {sentence(str(error))}")

    def settle(self) -> None:
        """Say how far it is after all that was there; with state left, its last micro-batch has said it."""
        batches, reached = int(self._progress.get("batchId", -1)), self.reached
        if reached and not self._progress.get("stateOperators"):
            self.future.beat(max(reached, self.future.span.start or reached), f"settle {self.future.query}", batches)

    def stop(self) -> None:
        """Stop it; what it has not committed it does again the next time."""
        if self._query is not None:
            self._query.stop()

    @property
    def _progress(self) -> dict[str, Any]:
        last = None if self._query is None else self._query.lastProgress
        return {} if last is None else dict(last)
