"""Late rows and dead letters of a run, counted by their source into the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from estream.errors import EStreamError
from estream.history.database import Database
from estream.history.prune import BATCHES, fold_counts
from estream.history.store import DatabaseStore
from estream.rule.recorder import patiently
from estream.rule.store import StoreAway, StoreStopped
from estream.stream.fuse import stream_of
from estream.stream.runner import Job
from estream.stream.sink import Outcome

Counted = list[tuple[str, str, int]]
"""Source, `late` or `dead`, and rows."""


def counts_of(job: Job, outcome: Outcome) -> Counted:
    """What a micro-batch refused: late rows by the stream, query or raised event they came from, and dead letters."""
    queries = {leaf.name: leaf.query for leaf in job.plan.leaves}
    counts: Counter[tuple[str, str]] = Counter()
    for _, table in outcome.late:
        for name, rows in Counter(table.column("event").to_pylist()).items():
            query = queries.get(name) or str(name)
            source = stream_of(job.checked, query) if query in job.checked.queries else None
            counts[source or query, "late"] += rows
    for source, table in outcome.dead:
        counts[source, "dead"] += table.num_rows
    return [(source, kind, rows) for (source, kind), rows in sorted(counts.items())]


@contextmanager
def counting(job: Job, root: Path, is_stopping: Callable[[], bool]) -> Iterator[Callable[[Outcome], None]]:
    """What is told of each micro-batch and counts it; a history is made only if there is something to count.

    Once it `is_stopping`, a history that is away is not waited for.
    """
    database = Database(job.settings.history.url, root)
    store = DatabaseStore(database, job.plan.name)
    made: list[bool] = []

    def count(batch: int, counted: Counted) -> None:
        if not made:
            database.upgrade()
            made.append(True)
        store.count(batch, counted)
        if batch % BATCHES == 0:
            fold_counts(database, job.plan.name)

    def watch(outcome: Outcome) -> None:
        counted = counts_of(job, outcome)
        try:
            if counted:
                patiently(lambda: count(outcome.batch, counted), is_stopping)
        except (StoreAway, StoreStopped) as error:
            raise EStreamError(str(error)) from None

    try:
        yield watch
    finally:
        database.close()
