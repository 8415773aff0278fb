"""Future queries of a file, wired together: schedules in the history's database, queries on Spark, the scheduler."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from estream.errors import EStreamError
from estream.history.database import Database
from estream.history.schedules import Schedule, ScheduleStore
from estream.plan.build import build
from estream.rule.agenda import now
from estream.rule.store import StoreAway, StoreStopped
from estream.service.scheduler import Definition, Scheduler, agreed
from estream.spec.future import Span, future_queries, launched, seen_name, span_of
from estream.spec.model import Query
from estream.stream.future import future_channel, on_channels
from estream.stream.future_job import Future
from estream.stream.runner import Job
from estream.stream.sink import Take


@dataclass(slots=True)
class Futures:
    """The future queries of each version of a file."""

    root: Path
    is_stopping: Callable[[], bool] = lambda: False
    """Whether the run is to end: then no query is waited for."""
    clock: Callable[[], int] = now
    """Microseconds since the epoch."""
    _own: dict[int, tuple[dict[str, Schedule], dict[str, Future]]] = field(default_factory=dict)
    """By the number of a job: its schedules, and its queries."""

    def job(self, job: Job, observe: Sequence[str] = ()) -> Job:
        """The job with its future queries on channels; they run on their own while it is at work."""
        written = future_queries(job.checked)
        if not written:
            return job
        digests = {name: _digest(query) for name, query in written.items()}
        begun = self.clock()
        definitions = {}
        for name, query in written.items():
            span = span_of(query, begun)
            definitions[name] = Definition(digests[name], span.start, span.stop, query.missed)
        schedules = agreed(self._known(job), definitions, begun)
        whole = launched(job.checked, {name: Span(one.start, one.stop) for name, one in schedules.items()})
        names = {name: seen_name(job.checked.queries[name]) for name in written}
        channels = {names[name]: f"{job.plan.name}__{name}__{digests[name]}" for name in written}
        checked = on_channels(whole, channels)
        made = replace(job, checked=checked, plan=build(checked, observe)[0])
        futures = {
            name: Future(made, whole, names[name], channels[names[name]], Span(one.start, one.stop))
            for name, one in schedules.items()
        }
        self._own[id(made)] = schedules, futures
        return made

    @contextmanager
    def at_work(self, job: Job) -> Iterator[tuple[Take, ...]]:
        """The scheduler of a job and the queries that it has started."""
        if id(job) not in self._own:
            yield ()
            return
        from pyspark.sql import SparkSession

        from estream.stream.future_stage import SparkStage

        schedules, futures = self._own[id(job)]
        for future in futures.values():
            future_channel(job.channels / future.channel, future.checked.queries[future.query])
        with ExitStack() as opened:
            store = opened.enter_context(self._store(job))
            stage = SparkStage(futures, SparkSession.builder.getOrCreate(), self.is_stopping)
            opened.callback(stage.stop)
            known = store.all()
            current = {name: _latest(one, known.get(name)) for name, one in schedules.items()}
            scheduler = Scheduler(store, current, stage, self.clock)
            opened.callback(scheduler.close)
            scheduler.begin()
            stage.require_well()
            yield (stage.take,)

    def _known(self, job: Job) -> dict[str, Schedule]:
        """What is scheduled already; who only asks makes no database."""
        database = Database(job.settings.history.url, self.root)
        is_there = database.exists
        database.close()
        if not is_there:
            return {}
        with self._store(job) as store:
            return store.all()

    @contextmanager
    def _store(self, job: Job) -> Iterator[ScheduleStore]:
        database = Database(job.settings.history.url, self.root)
        try:
            yield ScheduleStore(database, job.plan.name)
        except (StoreAway, StoreStopped) as error:
            raise EStreamError(str(error)) from None
        finally:
            database.close()


def _latest(schedule: Schedule, kept: Schedule | None) -> Schedule:
    """How far the query has come by now; one that waited until now may have to be skipped, which the store learns."""
    has_begun = kept is not None and kept.definition == schedule.definition and kept.state != "waiting"
    return kept if kept is not None and has_begun else schedule


def _digest(query: Query) -> str:
    text = query.model_dump_json(exclude={"description", "missed"})
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()
