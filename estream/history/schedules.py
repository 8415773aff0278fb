"""The schedules of future queries: kept, so that a restart goes on with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import delete, insert, select, update

from estream.history.database import Database
from estream.history.tables import schedules

State = Literal["waiting", "running", "over", "skipped"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a query starts and stops, in microseconds since the epoch, and how far it is."""

    query: str
    definition: str
    """What was written; another definition is another schedule."""
    start: int | None
    stop: int | None
    state: State = "waiting"


class ScheduleStore:
    """The schedules of one CEQ file."""

    def __init__(self, database: Database, ceq: str) -> None:
        self._database, self._ceq = database, ceq
        database.upgrade()

    def all(self) -> dict[str, Schedule]:
        """Every schedule, by its query."""
        asked = select(schedules).where(schedules.c.ceq == self._ceq)
        with self._database.begin() as connection:
            rows = connection.execute(asked).mappings().all()
        return {row["query"]: Schedule(**{name: row[name] for name in Schedule.__slots__}) for row in rows}

    def put(self, schedule: Schedule) -> None:
        """Keep a schedule, instead of the one that the query had."""
        mine = (schedules.c.ceq == self._ceq) & (schedules.c.query == schedule.query)
        row = {"ceq": self._ceq, **{name: getattr(schedule, name) for name in Schedule.__slots__}}
        with self._database.begin() as connection:
            connection.execute(delete(schedules).where(mine))
            connection.execute(insert(schedules), [row])

    def mark(self, query: str, state: State) -> None:
        """Say how far a query is."""
        mine = (schedules.c.ceq == self._ceq) & (schedules.c.query == query)
        with self._database.begin() as connection:
            connection.execute(update(schedules).where(mine).values(state=state))
