"""Cascades: actions raise events, the depth is counted through the graph, and an endless one ends with an error."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from estream.app_rules import publisher, raiser
from estream.history.database import Database
from estream.rule.action import Services
from estream.rule.detection import Detection
from estream.rule.failure import ActionFailed, ActionRefused
from estream.scalar import Duration
from estream.stream.channel import Channel
from tests.rule.desk import STREAM, Desk, load, settings

TEXT = """
events:
  A: {on: Rows}
  Alarm: {raised: {level: bigint, word: string}}
rules:
  begin:
    on: A
    actions: [{raise: {event: Alarm, attributes: {level: "A.n + 1", word: "upper(A.name)"}}}]
  again:
    on: Alarm
    actions: [{raise: {event: Alarm, attributes: {level: "Alarm.level + 1", word: "Alarm.word"}}}]
    retry: {attempts: 3, backoff: 1 ms}
"""


class Channels:
    """Raised events, each at its own time."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, dict[str, Any]]] = []

    def raise_event(self, event: str, attributes: Mapping[str, Any], key: str, is_repeated: bool) -> int:
        self.rows.append((100 + len(self.rows), dict(attributes)))
        return round(self.rows[-1][0] * 1_000_000)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(f"sqlite:///{tmp_path}/history.db")


def test_a_raised_event_has_the_values_of_its_expressions_and_an_endless_cascade_ends(database: Database) -> None:
    channels = Channels()
    deep = settings(cascade_depth=4)
    with Desk(TEXT, database, settings=deep, services=Services(raise_event=channels.raise_event)) as desk:
        desk.agenda.take(0, desk.detect(("A", 1, {"n": 1, "name": "fire"})))
        for batch in range(1, 10):
            if len(channels.rows) >= batch:
                second, row = channels.rows[batch - 1]
                desk.agenda.take(batch, desk.detect(("Alarm", second, row)))
    assert [row for _, row in channels.rows] == [{"level": level, "word": "FIRE"} for level in (2, 3, 4, 5)]
    with database.begin() as connection:
        assert connection.execute(text("SELECT depth FROM raised ORDER BY time")).scalars().all() == [1, 2, 3, 4]
        (error,) = connection.execute(text("SELECT error FROM firings WHERE state = 'dead'")).scalars().all()
    assert error == (
        "event 'Alarm' is raised 5 rules deep and the limit is 4 (rules.cascade_depth): "
        "rules on 'Alarm' and 'Alarm' raise each other without end"
    )


def test_the_depth_is_known_after_a_restart(database: Database) -> None:
    channels = Channels()
    services = Services(raise_event=channels.raise_event)
    for batch in range(4):
        with Desk(TEXT, database, settings=settings(cascade_depth=2), services=services) as desk:
            second, row = channels.rows[batch - 1] if batch else (1.0, {"n": 1, "name": "x"})
            desk.agenda.take(batch, desk.detect(("Alarm" if batch else "A", second, row)))
            if len(channels.rows) == batch:
                break
    assert len(channels.rows) == 2


def test_a_callback_raises_events_and_wrong_ones_are_dead_letters(database: Database) -> None:
    channels = Channels()

    def shout(detection: Detection) -> None:
        detection.raise_event("Alarm", level=9, word=detection.A.name)

    def mistake(detection: Detection) -> None:
        detection.raise_event("Alarm", level=9)

    plain = (
        TEXT[: TEXT.index("rules:")]
        + 'rules:\n  r: {on: A, actions: [{log: "x"}]}\n  w: {on: A, actions: [{log: "x"}]}\n'
    )
    calls = {"r": [shout], "w": [mistake], "Alarm": [lambda detection: None]}
    services = Services(raise_event=channels.raise_event)
    with Desk(plain, database, calls, services=services) as desk:
        desk.agenda.take(0, desk.detect(("A", 1, {"n": 1, "name": "x"})))
    assert [row for _, row in channels.rows] == [{"level": 9, "word": "x"}]
    with database.begin() as connection:
        (error,) = connection.execute(text("SELECT error FROM firings WHERE state = 'dead'")).scalars().all()
    assert error == "event 'Alarm' lacks word"


def test_a_raised_event_is_appended_to_its_channel_at_a_time_of_its_own(tmp_path: Path) -> None:
    checked, _ = load(STREAM + TEXT)
    raise_event = raiser(checked, tmp_path)
    times = [raise_event("Alarm", {"level": n, "word": "x"}, f"key {n}", False) for n in (1, 2)]
    rows = appended(tmp_path / "Alarm")
    assert [row["level"] for row in rows] == [1, 2]
    assert [round(row["_time"].timestamp() * 1_000_000) for row in rows] == times
    assert times[0] < times[1]
    with pytest.raises(ActionRefused, match="channel 'Alarm' refuses the row"):
        raise_event("Alarm", {"level": "high", "word": "x"}, "key 3", False)


def test_what_was_under_way_at_a_crash_is_appended_once(database: Database, tmp_path: Path) -> None:
    """The process ends after the events are appended and before that is recorded; then the firings run again."""

    def shout(detection: Detection) -> None:
        for level in (1, 2):
            detection.raise_event("Alarm", level=level, word="twice")

    text_of = TEXT.replace(
        "  again:", "  tell: {on: A, actions: [{publish: told}]}\n  shouting: {on: A, actions: [{log: x}]}\n  again:"
    )
    checked, plan = load(STREAM + text_of)
    services = Services(raise_event=raiser(checked, tmp_path), publish=publisher(plan, tmp_path))
    for begun in range(3):
        with Desk(text_of, database, {"shouting": [shout]}, services=services) as desk:
            if not begun:
                desk.agenda.take(0, desk.detect(("A", 1, {"n": 1, "name": "fire"})))
        with database.begin() as connection:
            unfinished = ("pending", "running", "running")[begun]
            connection.execute(text("UPDATE firings SET state = :state, step = 0, attempts = 0"), {"state": unfinished})
    assert sorted(row["word"] for row in appended(tmp_path / "Alarm")) == ["FIRE", "twice", "twice"]
    assert [row["A_name"] for row in appended(tmp_path / "told")] == ["fire"]
    with database.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM raised")).scalar() == 3


def test_an_event_that_no_event_here_waits_for_can_be_raised(database: Database, tmp_path: Path) -> None:
    alone = TEXT[: TEXT.index("  again:")]
    services = Services(raise_event=raiser(load(STREAM + alone)[0], tmp_path))
    with Desk(alone, database, services=services) as desk:
        desk.agenda.take(0, desk.detect(("A", 1, {"n": 1, "name": "fire"})))
    assert [row["word"] for row in appended(tmp_path / "Alarm")] == ["FIRE"]


def test_an_action_that_was_given_up_raises_nothing_more(database: Database) -> None:
    channels, over, told = Channels(), threading.Event(), []

    def slow(detection: Detection) -> None:
        over.wait(10)
        try:
            detection.raise_event("Alarm", level=1, word="x")
        except ActionFailed as error:
            told.append(str(error))
            over.clear()

    quick = settings(timeout=Duration.of("10 ms"), attempts=1)
    with Desk(TEXT, database, {"A": [slow]}, quick, Services(raise_event=channels.raise_event)) as desk:
        desk.agenda.take(0, desk.detect(("A", 1, {"n": 1, "name": "x"})))
        over.set()
        for _ in range(1000):
            if told:
                break
            threading.Event().wait(0.01)
    assert told == ["event 'Alarm' is not raised: the action took too long and was given up"]
    assert [row["word"] for _, row in channels.rows] == ["X"]


def appended(channel: Path) -> list[dict[str, Any]]:
    """The rows of a channel."""
    return [row for block in Channel(channel).read() for row in block.rows.to_pylist()]
