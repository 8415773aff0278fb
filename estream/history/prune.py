"""Retention: what is older than it has to be kept is removed, a little at a time, so that nobody waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from estream.history.database import Database
from estream.history.tables import OPEN, attempts, counts, detections, events, firings, raised, rules, throttles
from estream.rule.detection import now
from estream.rule.store import StoreAway, StoreStopped

STEP: Final = 500
"""Detections that are removed in one transaction."""
PAUSE: Final = 0.05
"""Seconds between two steps: room for those who record."""
EVERY: Final = 3600.0
LATE: Final = 86_400_000_000
"""How far behind the latest detection of a rule another one may come, in microseconds."""
BATCHES: Final = 1_000
"""Micro-batches whose counts are kept apart: one that comes again is counted once."""
FOLDED: Final = -1
"""The micro-batch that the counts of all earlier ones are added up in."""

log: Final = logging.getLogger("estream.history")


def prune(database: Database, before: int, step: int = STEP) -> Iterator[int]:
    """Remove detections recorded before a time with all that came of them; each step gives how many it removed.

    A detection with a firing that is still to run or to be retried stays, and so does a dead letter.
    """
    after = 0
    while True:
        with database.begin() as connection:
            oldest = select(detections.c.number, detections.c.recorded).where(detections.c.number > after)
            found = connection.execute(oldest.order_by(detections.c.number).limit(step)).all()
            old = [row.number for row in found if row.recorded < before]
            removed = _remove(connection, old) if old else 0
        if not old:
            return
        after = old[-1]
        yield removed


def _remove(connection: Connection, numbers: list[int]) -> int:
    asked = select(detections.c.number, detections.c.event, detections.c.id)
    by_event: dict[int, dict[int, int]] = {}
    for row in connection.execute(asked.where(detections.c.number.in_(numbers))):
        by_event.setdefault(row.event, {})[row.id] = row.number
    return sum(_remove_of(connection, event, old) for event, old in by_event.items())


def _remove_of(connection: Connection, event: int, old: dict[int, int]) -> int:
    """Remove detections of one event, id to number, that nothing waits for."""
    ceq = select(events.c.ceq).where(events.c.number == event).scalar_subquery()
    mine = list(connection.execute(select(rules.c.number).where(rules.c.ceq == ceq)).scalars())
    asked = select(firings.c.number, firings.c.rule, firings.c.detection, firings.c.state)
    # By rule and detection, as firings are found: an index by event would cost every firing that is recorded.
    found = asked.where(firings.c.rule.in_(mine), firings.c.detection.in_(list(old)), firings.c.event == event)
    fired = connection.execute(found).all()
    waiting = {row.detection for row in fired if row.state in (*OPEN, "dead")}
    gone = [row for row in fired if row.detection not in waiting]
    if gone:
        keys = [{"its_rule": row.rule, "its_detection": row.detection} for row in gone]
        for table in (attempts, raised, firings):
            both = (table.c.rule == bindparam("its_rule"), table.c.detection == bindparam("its_detection"))
            connection.execute(delete(table).where(*both), keys)
    ended = [number for key, number in old.items() if key not in waiting]
    connection.execute(delete(detections).where(detections.c.number.in_(ended)))
    return len(ended)


def prune_throttles(database: Database, ceq: str, periods: Mapping[str, int], step: int = STEP) -> Iterator[int]:
    """Forget partitions whose throttle is long over; `periods` are microseconds by rule. Gives how many, by step."""
    with database.begin() as connection:
        asked = select(rules.c.name, rules.c.number).where(rules.c.ceq == ceq, rules.c.name.in_(list(periods)))
        numbers = {row.number: periods[row.name] for row in connection.execute(asked)}
    for number, period in numbers.items():
        mine = throttles.c.rule == number
        after: str | None = None
        while True:
            with database.begin() as connection:
                latest = connection.execute(select(func.max(throttles.c.end)).where(mine)).scalar() or 0
                following = mine if after is None else mine & (throttles.c.partition > after)
                found = select(throttles.c.partition, throttles.c.end).where(following).order_by(throttles.c.partition)
                page = connection.execute(found.limit(step)).all()
                old = [row.partition for row in page if row.end < latest - period - LATE]
                if old:
                    connection.execute(delete(throttles).where(mine, throttles.c.partition.in_(old)))
            if not page:
                break
            after = page[-1].partition
            yield len(old)


def fold_counts(database: Database, ceq: str, keep: int = BATCHES) -> None:
    """Add up the counts of micro-batches that cannot come again: one row of each source and kind stands for them."""
    with database.begin() as connection:
        mine = counts.c.ceq == ceq
        latest = connection.execute(select(func.max(counts.c.batch)).where(mine)).scalar()
        old = mine & (counts.c.batch < (latest or 0) - keep)
        asked = select(counts.c.source, counts.c.kind, func.sum(counts.c.rows).label("rows"), func.count().label("n"))
        sums = connection.execute(asked.where(old).group_by(counts.c.source, counts.c.kind)).all()
        if sum(row.n for row in sums) > len(sums):
            connection.execute(delete(counts).where(old))
            rows = [
                {"ceq": ceq, "batch": FOLDED, "source": row.source, "kind": row.kind, "rows": int(row.rows)}
                for row in sums
            ]
            connection.execute(insert(counts), rows)


class Pruner:
    """A thread that prunes now and then while a CEQ file runs. Times are microseconds.

    `periods` are those of its throttled rules.
    """

    def __init__(
        self,
        database: Database,
        keep: int,
        ceq: str,
        periods: Mapping[str, int],
        clock: Callable[[], int] = now,
    ) -> None:
        self._database, self._keep, self._clock = database, keep, clock
        self._ceq, self._periods = ceq, periods
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="pruner", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """Stop after the step that runs."""
        self._over.set()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                steps = chain(
                    prune(self._database, self._clock() - self._keep),
                    prune_throttles(self._database, self._ceq, self._periods),
                )
                for _ in steps:
                    if self._over.wait(PAUSE):
                        return
            except (StoreAway, StoreStopped) as error:
                log.warning("old records are not removed for now: %s", error)
            if self._over.wait(EVERY):
                return
