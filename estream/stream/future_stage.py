"""Future queries on Spark, as the scheduler asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from estream.errors import EStreamError
from estream.stream.future_job import Future, FutureRunner

_LOOK = 0.25
"""Seconds between looks at whether the run is to end."""


class SparkStage:
    """Starts and stops future queries in the session of the run."""

    def __init__(self, futures: Mapping[str, Future], session: SparkSession, is_stopping: Callable[[], bool]) -> None:
        """`is_stopping` says whether the run is to end: then nothing is waited for."""
        self._futures, self._session, self._is_stopping = futures, session, is_stopping
        self._runners: dict[str, FutureRunner] = {}
        self._failure: EStreamError | None = None

    def promise(self, query: str) -> None:
        """Say that the query gives nothing before its start."""
        self._futures[query].promise()

    def start(self, query: str) -> None:
        """Start the query, or let it go on; in a run over what is there it is waited for."""
        try:
            runner = self._runners[query] = FutureRunner(self._futures[query], self._session)
            if self._futures[query].job.once and self._is_done(runner):
                runner.settle()
        except EStreamError as error:
            self._failure = error

    def _is_done(self, runner: FutureRunner) -> bool:
        """Wait until it has taken what is there; false if the run is to end before."""
        while not runner.wait(_LOOK):
            if self._is_stopping():
                return False
        return True

    def is_over(self, query: str) -> bool:
        """Whether it has given all the rows of its span."""
        runner = self._runners.get(query)
        if runner is None:
            return False
        try:
            runner.require_well()
        except EStreamError as error:
            self._failure = error
            return False
        return runner.is_over

    def end(self, query: str) -> None:
        """Stop the query, say that it gives nothing more, and put its state away."""
        if query in self._runners:
            self._runners.pop(query).stop()
        self._futures[query].end()

    def take(self, batch: int, detections: pa.Table) -> None:
        """Among those who take detections: a future query that failed ends the run, which would wait for it."""
        self.require_well()

    def require_well(self) -> None:
        """Raise what a future query failed with."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop what runs; it goes on after the next start."""
        for runner in self._runners.values():
            runner.stop()
        self._runners.clear()
