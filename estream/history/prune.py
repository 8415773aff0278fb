"""Retention: what is older than it has to be kept is removed, a little at a time, so that nobody waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Final

from sqlalchemy import Connection, and_, delete, exists, select

from estream.history.database import Database
from estream.history.tables import OPEN, attempts, detections, firings, raised
from estream.rule.agenda import now
from estream.rule.store import StoreAway, StoreStopped

STEP: Final = 500
"""Detections that are removed in one transaction."""
PAUSE: Final = 0.05
"""Seconds between two steps: room for those who record."""
EVERY: Final = 3600.0

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
    mine = and_(firings.c.event == detections.c.event, firings.c.detection == detections.c.id)
    waits = exists().where(mine, firings.c.state.in_((*OPEN, "dead")))
    asked = select(detections.c.number, detections.c.event, detections.c.id)
    gone = connection.execute(asked.where(detections.c.number.in_(numbers), ~waits)).all()
    for event in {row.event for row in gone}:
        ids = [row.id for row in gone if row.event == event]
        ended = select(firings.c.rule).where(firings.c.event == event).distinct()
        for table in (attempts, raised):
            connection.execute(delete(table).where(table.c.rule.in_(ended), table.c.detection.in_(ids)))
        connection.execute(delete(firings).where(firings.c.event == event, firings.c.detection.in_(ids)))
    connection.execute(delete(detections).where(detections.c.number.in_([row.number for row in gone])))
    return len(gone)


class Pruner:
    """A thread that prunes now and then while a CEQ file runs. `keep` is in microseconds."""

    def __init__(self, database: Database, keep: int, clock: Callable[[], int] = now) -> None:
        self._database, self._keep, self._clock = database, keep, clock
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
                for _ in prune(self._database, self._clock() - self._keep):
                    if self._over.wait(PAUSE):
                        return
            except (StoreAway, StoreStopped) as error:
                log.warning("old records are not removed for now: %s", error)
            if self._over.wait(EVERY):
                return
