"""Questions to the history: which firings there were, everything about one of them, and what to try again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, RowMapping, Select, and_, func, or_, select, update

from estream.errors import EStreamError
from estream.history.database import Database
from estream.history.tables import attempts, counts, detections, events, firings, raised, rules, versions
from estream.rule.detection import Detected, now
from estream.rule.store import Attempt, Raised
from estream.rule.values import constituents_from_json

STATES: Final = ("pending", "running", "done", "failed", "dead", "throttled", "suppressed")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which firings are asked for; times are microseconds, and what is None does not matter."""

    ceq: str | None = None
    rule: str | None = None
    event: str | None = None
    since: int | None = None
    until: int | None = None
    key: str | None = None
    """Text of the partition, or a part of it: `card=7`."""
    state: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Line:
    """A firing in a list."""

    number: int
    ceq: str
    rule: str
    event: str
    end: int
    partition: str | None
    state: str
    attempts: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Whole:
    """Everything that is recorded of a firing."""

    line: Line
    version: str
    definition: str
    condition: str | None
    detected: Detected
    batch: int
    recorded: int
    due: int | None
    tried: tuple[Attempt, ...]
    raised: tuple[Raised, ...]


_FIRING: Final = (
    firings.join(rules, rules.c.number == firings.c.rule)
    .join(events, events.c.number == firings.c.event)
    .join(detections, and_(detections.c.event == firings.c.event, detections.c.id == firings.c.detection))
)
_LINE: Final = (
    firings.c.number, rules.c.ceq, rules.c.name.label("rule"), events.c.name.label("event"), detections.c.end,
    firings.c.partition, firings.c.state, firings.c.attempts, firings.c.error,
)  # fmt: skip


def lines(database: Database, wanted: Filter) -> list[Line]:
    """The firings that are asked for, the latest first."""
    asked: Select[Any] = select(*_LINE).select_from(_FIRING).where(*_conditions(wanted))
    with database.begin() as connection:
        found = connection.execute(asked.order_by(firings.c.number.desc()).limit(wanted.limit)).mappings().all()
    return [_line(row) for row in found]


def _conditions(wanted: Filter) -> list[ColumnElement[bool]]:
    asked: list[ColumnElement[bool]] = []
    if wanted.ceq is not None:
        asked.append(rules.c.ceq == wanted.ceq)
    if wanted.rule is not None:
        asked.append(rules.c.name == wanted.rule)
    if wanted.event is not None:
        asked.append(events.c.name == wanted.event)
    if wanted.since is not None:
        asked.append(detections.c.end >= wanted.since)
    if wanted.until is not None:
        asked.append(detections.c.end < wanted.until)
    if wanted.key is not None:
        part = wanted.key.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        ways = (part, f"{part}, %", f"%, {part}", f"%, {part}, %")
        asked.append(or_(*(firings.c.partition.like(way, escape="\\") for way in ways)))
    if wanted.state is not None:
        asked.append(firings.c.state == wanted.state)
    return asked


def _line(row: RowMapping) -> Line:
    return Line(*(row[name] for name in Line.__slots__))


def whole(database: Database, number: int) -> Whole:
    """Everything about the firing with the number; EStreamError if there is none."""
    columns = (
        *_LINE, versions.c.version, versions.c.definition, versions.c.condition, events.c.context, detections.c.start,
        detections.c.id, detections.c.tick, detections.c.ticks, detections.c.constituents, detections.c.batch,
        detections.c.recorded, firings.c.due, firings.c.rule.label("rule_number"),
    )  # fmt: skip
    joined = _FIRING.join(versions, versions.c.number == firings.c.version)
    with database.begin() as connection:
        row = connection.execute(select(*columns).select_from(joined).where(firings.c.number == number)).mappings()
        found = row.one_or_none()
        if found is None:
            raise EStreamError(f"the history has no firing {number}; `estream history` lists them")
        mine = (attempts.c.rule == found["rule_number"], attempts.c.detection == found["id"])
        tried = connection.execute(select(attempts).where(*mine).order_by(attempts.c.started)).all()
        its = (raised.c.rule == found["rule_number"], raised.c.detection == found["id"])
        made = connection.execute(select(raised).where(*its).order_by(raised.c.time)).all()
    ticks = None if found["ticks"] is None else tuple(json.loads(found["ticks"]))
    return Whole(
        line=_line(found),
        version=found["version"],
        definition=found["definition"],
        condition=found["condition"],
        detected=Detected(
            found["event"], found["context"] or None, found["start"], found["end"], found["id"],
            constituents_from_json(found["constituents"]), found["tick"], ticks,
        ),
        batch=found["batch"],
        recorded=found["recorded"],
        due=found["due"],
        tried=tuple(Attempt(one.number, one.action, one.started, one.duration, one.error) for one in tried),
        raised=tuple(Raised(one.event, one.time, one.depth) for one in made),
    )  # fmt: skip


def retry(database: Database, numbers: Sequence[int] | None, clock: Callable[[], int] = now) -> int:
    """Ask for another attempt of firings, or of all dead letters; gives how many there are.

    Whoever runs their CEQ file tries them again at once, or when it starts the next time. They have all their attempts
    before them again; actions that are done are not repeated.
    """
    again = update(firings).values(state="failed", due=clock(), attempts=0)
    with database.begin() as connection:
        if numbers is None:
            return connection.execute(again.where(firings.c.state == "dead")).rowcount
        asked = select(firings.c.number, firings.c.state).where(firings.c.number.in_(numbers))
        found = {row.number: row.state for row in connection.execute(asked)}
        wrong = [_why(number, found.get(number)) for number in numbers if found.get(number) not in ("dead", "failed")]
        if wrong:
            raise EStreamError("\n".join(wrong))
        return connection.execute(again.where(firings.c.number.in_(numbers))).rowcount


def _why(number: int, state: str | None) -> str:
    if state is None:
        return f"the history has no firing {number}; `estream history --state dead` lists those to retry"
    return f"firing {number} is {state}; only a failed or dead one can be tried again"


def totals(database: Database) -> list[tuple[str, str, str, int]]:
    """Late rows and dead letters: file, source, kind and number of rows."""
    asked = select(counts.c.ceq, counts.c.source, counts.c.kind, func.sum(counts.c.rows))
    with database.begin() as connection:
        found = connection.execute(asked.group_by(counts.c.ceq, counts.c.source, counts.c.kind)).all()
    return sorted((ceq, source, kind, int(rows)) for ceq, source, kind, rows in found)
