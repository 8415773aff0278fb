"""Future queries by a clock that the test moves: started at their time, ended when over, kept over a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from estream.history.database import Database
from estream.history.schedules import ScheduleStore
from estream.service.scheduler import Definition, Scheduler, agreed

FIVE, SIX = 5_000_000, 6_000_000


@dataclass
class Played:
    """A stage that notes what it is told."""

    told: list[str] = field(default_factory=list)
    over: set[str] = field(default_factory=set)

    def promise(self, query: str) -> None:
        self.told.append(f"promise {query}")

    def start(self, query: str) -> None:
        self.told.append(f"start {query}")

    def is_over(self, query: str) -> bool:
        return query in self.over

    def end(self, query: str) -> None:
        self.told.append(f"end {query}")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ScheduleStore]:
    database = Database("sqlite:///history.db", tmp_path)
    yield ScheduleStore(database, "small")
    database.close()


def launch(store: ScheduleStore, definitions: dict[str, Definition], now: int, stage: Played) -> Scheduler:
    """A scheduler as a start at this time has it, with nobody to wake it but the test."""
    schedules = agreed(store.all(), definitions, now)
    scheduler = Scheduler(store, schedules, stage, lambda: clock[0])
    clock[0] = now
    scheduler.recall()
    return scheduler


clock = [0]
HOLIDAY = {"Holiday": Definition("d1", FIVE, SIX)}


def test_a_query_is_started_at_its_time_and_ended_once_it_is_over(store: ScheduleStore) -> None:
    stage = Played()
    scheduler = launch(store, HOLIDAY, 1_000_000, stage)
    clock[0] = FIVE - 1
    scheduler.tick()
    assert stage.told == ["promise Holiday"]
    clock[0] = FIVE
    scheduler.tick()
    clock[0] = SIX
    scheduler.tick()
    assert stage.told == ["promise Holiday", "start Holiday"]
    assert store.all()["Holiday"].state == "running"
    stage.over.add("Holiday")
    scheduler.tick()
    scheduler.tick()
    assert stage.told == ["promise Holiday", "start Holiday", "end Holiday"]
    assert store.all()["Holiday"].state == "over"


def test_a_restart_goes_on_with_what_runs_and_with_the_time_that_was_agreed(store: ScheduleStore) -> None:
    launch(store, {"Soon": Definition("in 5 s", FIVE, None)}, 0, Played())
    stage = Played()
    again = launch(store, {"Soon": Definition("in 5 s", FIVE + 3_000_000, None)}, 3_000_000, stage)
    clock[0] = FIVE
    again.tick()
    assert stage.told == ["promise Soon", "start Soon"]
    last = Played()
    launch(store, {"Soon": Definition("in 5 s", 99_000_000, None)}, 9_000_000, last)
    assert last.told == ["start Soon"]


@pytest.mark.parametrize(
    ("missed", "told"), [("run_late", ["promise Holiday", "start Holiday"]), ("skip", ["end Holiday"])]
)
def test_a_start_that_was_missed_runs_late_or_is_skipped(store: ScheduleStore, missed: str, told: list[str]) -> None:
    definitions = {"Holiday": Definition("d1", FIVE, SIX, missed)}
    launch(store, definitions, 1_000_000, Played())
    stage = Played()
    launch(store, definitions, FIVE + 1, stage)
    assert stage.told == told
    assert store.all()["Holiday"].state == {"run_late": "running", "skip": "skipped"}[missed]


def test_another_definition_is_another_schedule(store: ScheduleStore) -> None:
    first = Played()
    scheduler = launch(store, HOLIDAY, SIX, first)
    first.over.add("Holiday")
    scheduler.tick()
    assert store.all()["Holiday"].state == "over"
    stage = Played()
    launch(store, {"Holiday": Definition("d2", FIVE, SIX)}, SIX, stage)
    assert stage.told == ["promise Holiday", "start Holiday"]


def test_it_is_closed_in_good_order_while_starts_are_due(store: ScheduleStore) -> None:
    definitions = {f"Q{number}": Definition("d1", FIVE, None) for number in range(20)}
    for _ in range(30):
        # Its own clock says that nothing is due, but the alarms go by that of the machine.
        scheduler = Scheduler(store, agreed({}, definitions, 0), Played(), lambda: 0)
        scheduler.begin()
        scheduler.close()
