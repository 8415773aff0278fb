"""The history of one CEQ file in a database: what rules ask of it, in few and large statements."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, RowMapping, Select, Table, and_, bindparam, delete, func, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from estream.history.database import Database
from estream.history.owner import Owner
from estream.history.tables import attempts, counts, detections, events, firings, raised, rules, throttles, versions
from estream.rule.detection import Detected, now
from estream.rule.store import Coupling, NewFiring, Outcome, Records, RuleRecord, StoredFiring
from estream.rule.values import constituents_from_json, constituents_to_json

if TYPE_CHECKING:
    from estream.rule.layout import Layout

CHUNK: Final = 2_000
"""Detections that go into one statement."""
_ASKED: Final = 900
"""Values of one IN, below SQLite's limit."""
_LONGEST_KEY: Final = 500
"""Characters of a partition that an index of PostgreSQL holds for sure."""

_FINISH: Final = (
    update(firings)
    .where(firings.c.rule == bindparam("its_rule"), firings.c.detection == bindparam("its_detection"))
    .values({one: bindparam(f"new_{one}") for one in ("state", "step", "attempts", "due", "error")})
)
_START: Final = (
    update(firings)
    .where(firings.c.rule == bindparam("its_rule"), firings.c.detection == bindparam("its_detection"))
    .values(state="running", due=None)
)
_RAISED_BEFORE: Final = delete(raised).where(
    *(raised.c[name] == bindparam(f"its_{name}") for name in ("rule", "detection", "event", "time"))
)


class DatabaseStore:
    """The store of one CEQ file; `estream.rule.store.Store` says what each method gives."""

    def __init__(self, database: Database, ceq: str, clock: Callable[[], int] = now) -> None:
        self.database, self.ceq, self._clock = database, ceq, clock
        self._owner = Owner(database, ceq)
        self._rules: dict[str, tuple[int, int, RuleRecord]] = {}
        self._events: dict[tuple[str, str | None], int] = {}
        self._layout: Layout | None = None

    def declare(self, rules: Sequence[RuleRecord], layout: Layout) -> None:
        """See `Store.declare`."""
        self.database.upgrade()
        self._owner.take(self._clock())
        self._layout = layout
        with self.database.begin() as connection:
            known = [*layout.ranks, *((one.event, one.context) for one in rules)]
            self._events = {key: self._event(connection, *key) for key in dict.fromkeys(known)}
            self._rules = {one.name: (*self._rule(connection, one), one) for one in rules}

    def _event(self, connection: Connection, name: str, context: str | None) -> int:
        return _numbered(connection, events, {"ceq": self.ceq, "name": name, "context": context or ""})

    def _rule(self, connection: Connection, rule: RuleRecord) -> tuple[int, int]:
        number = _numbered(connection, rules, {"ceq": self.ceq, "name": rule.name})
        values = {
            "definition": rule.definition, "condition": rule.condition, "priority": rule.priority,
            "coupling": rule.coupling, "since": self._clock(),
        }  # fmt: skip
        return number, _numbered(connection, versions, {"rule": number, "version": rule.version}, values)

    def known(self, event: str, context: str | None, ids: Sequence[int]) -> set[int]:
        """See `Store.known`."""
        number = self._events.get((event, context))
        if number is None:
            return set()
        found: set[int] = set()
        with self.database.begin() as connection:
            for first in range(0, len(ids), _ASKED):
                asked = ids[first : first + _ASKED]
                mine = select(detections.c.id).where(detections.c.event == number, detections.c.id.in_(asked))
                found.update(connection.execute(mine).scalars())
        return found

    def record(self, batch: int, records: Records) -> None:
        """See `Store.record`."""
        recorded = self._clock()
        with self.database.begin() as connection:
            self._owner.require(connection)
            rows = records()
            while chunk := list(islice(rows, CHUNK)):
                self._record_events(connection, chunk)
                connection.execute(
                    _ignoring(connection, detections), [self._detection(one, batch, recorded) for one, _ in chunk]
                )
                fired = [self._firing(one, firing) for one, each in chunk for firing in each]
                if fired:
                    connection.execute(_ignoring(connection, firings), fired)
                throttled = [(f, one.end) for one, each in chunk for f in each if f.throttles]
                self._throttle(connection, [(f.rule, f.partition or "", end) for f, end in throttled])

    def _record_events(self, connection: Connection, chunk: Iterable[tuple[Detected, Any]]) -> None:
        for event, context in {(one.event, one.context) for one, _ in chunk} - self._events.keys():
            self._events[event, context] = self._event(connection, event, context)

    def _detection(self, one: Detected, batch: int, recorded: int) -> dict[str, Any]:
        return {
            "event": self._events[one.event, one.context], "id": one.id, "start": one.start, "end": one.end,
            "batch": batch, "tick": one.tick, "ticks": None if one.ticks is None else json.dumps(one.ticks),
            "constituents": constituents_to_json(one.constituents), "recorded": recorded,
        }  # fmt: skip

    def _firing(self, one: Detected, firing: NewFiring) -> dict[str, Any]:
        rule, version, _ = self._rules[firing.rule]
        return {
            "rule": rule, "version": version, "event": self._events[one.event, one.context], "detection": one.id,
            "partition": firing.partition, "state": firing.state,
        }  # fmt: skip

    def _throttle(self, connection: Connection, fired: Iterable[tuple[str, str, int]]) -> None:
        last = {(self._rules[rule][0], _short(partition)): end for rule, partition, end in fired}
        if last:
            statement: Any = _dialect(connection).insert(throttles)
            statement = statement.on_conflict_do_update(
                index_elements=["rule", "partition"], set_={"end": statement.excluded.end}
            )
            rows = [{"rule": rule, "partition": part, "end": end} for (rule, part), end in last.items()]
            connection.execute(statement, rows)

    def finish(self, started: Sequence[tuple[str, int]], outcomes: Sequence[Outcome]) -> None:
        """See `Store.finish`."""
        with self.database.begin() as connection:
            self._owner.require(connection)
            if started:
                running = [{"its_rule": self._rules[rule][0], "its_detection": number} for rule, number in started]
                connection.execute(_START, running)
            if outcomes:
                connection.execute(_FINISH, [self._outcome(one) for one in outcomes])
            tried = [self._attempt(one, place) for one in outcomes for place in range(len(one.tried))]
            if tried:
                connection.execute(insert(attempts), tried)
            made = [
                {"rule": self._rules[one.rule][0], "detection": one.detection, "event": each.event,
                 "time": each.time, "depth": each.depth} for one in outcomes for each in one.raised
            ]  # fmt: skip
            if made:
                # A repeated action raises what is there already: the same event at the same time.
                connection.execute(
                    _RAISED_BEFORE, [{f"its_{key}": value for key, value in row.items()} for row in made]
                )
                connection.execute(insert(raised), made)
            self._throttle(connection, [(one.rule, *one.fired) for one in outcomes if one.fired is not None])

    def _outcome(self, one: Outcome) -> dict[str, Any]:
        return {
            "its_rule": self._rules[one.rule][0], "its_detection": one.detection, "new_state": one.state,
            "new_step": one.step, "new_attempts": one.attempts, "new_due": one.due, "new_error": one.error,
        }  # fmt: skip

    def _attempt(self, one: Outcome, place: int) -> dict[str, Any]:
        tried = one.tried[place]
        return {
            "rule": self._rules[one.rule][0], "detection": one.detection, "number": tried.number,
            "action": tried.action, "started": tried.started, "duration": tried.duration, "error": tried.error,
        }  # fmt: skip

    def unfinished(self, coupling: Coupling, after: int, limit: int) -> Sequence[tuple[int, StoredFiring]]:
        """See `Store.unfinished`."""
        mine = [number for number, _, record in self._rules.values() if record.coupling == coupling]
        asked = self._stored().where(
            firings.c.state.in_(("pending", "running")), firings.c.rule.in_(mine), firings.c.number > after
        )
        found = self._rows(asked.order_by(firings.c.number).limit(limit))
        return [(row["number"], self._firing_of(row)) for row in found]

    def due(self, now: int, limit: int) -> Sequence[StoredFiring]:
        """See `Store.due`."""
        self._owner.hold()
        mine = [number for number, *_ in self._rules.values()]
        asked = self._stored().where(firings.c.state == "failed", firings.c.due <= now, firings.c.rule.in_(mine))
        return [self._firing_of(row) for row in self._rows(asked.order_by(firings.c.due).limit(limit))]

    def next_due(self) -> int | None:
        """See `Store.next_due`."""
        mine = [number for number, *_ in self._rules.values()]
        with self.database.begin() as connection:
            asked = select(func.min(firings.c.due)).where(firings.c.state == "failed", firings.c.rule.in_(mine))
            found: int | None = connection.execute(asked).scalar()
        return found

    def _stored(self) -> Select[Any]:
        joined = firings.join(rules, rules.c.number == firings.c.rule).join(
            detections, and_(detections.c.event == firings.c.event, detections.c.id == firings.c.detection)
        )
        joined = joined.join(events, events.c.number == firings.c.event)
        columns = (firings.c.number, rules.c.name.label("rule"), firings.c.state, firings.c.partition, firings.c.step,
                   firings.c.attempts, events.c.name.label("event"), events.c.context, detections.c.start,
                   detections.c.end, detections.c.id, detections.c.tick, detections.c.ticks,
                   detections.c.constituents)  # fmt: skip
        return select(*columns).select_from(joined)

    def _rows(self, asked: Select[Any]) -> Sequence[RowMapping]:
        with self.database.begin() as connection:
            return connection.execute(asked).mappings().all()

    def _firing_of(self, row: RowMapping) -> StoredFiring:
        parts = constituents_from_json(row["constituents"], self._layout)
        ticks = None if row["ticks"] is None else tuple(json.loads(row["ticks"]))
        detected = Detected(
            row["event"], row["context"] or None, row["start"], row["end"], row["id"], parts, row["tick"], ticks
        )
        return StoredFiring(row["rule"], detected, row["state"], row["partition"], row["step"], row["attempts"])

    def last_fired(self, rule: str, partitions: Sequence[str]) -> Mapping[str, int]:
        """See `Store.last_fired`."""
        found: dict[str, int] = {}
        with self.database.begin() as connection:
            for first in range(0, len(partitions), _ASKED):
                named = {_short(one): one for one in partitions[first : first + _ASKED]}
                asked = select(throttles.c.partition, throttles.c.end).where(
                    throttles.c.rule == self._rules[rule][0], throttles.c.partition.in_(list(named))
                )
                found.update((named[row.partition], row.end) for row in connection.execute(asked))
        return found

    def depth(self, event: str, time: int) -> int:
        """See `Store.depth`."""
        with self.database.begin() as connection:
            asked = select(func.max(raised.c.depth)).where(raised.c.event == event, raised.c.time == time)
            return connection.execute(asked).scalar() or 0

    def count(self, batch: int, counted: Iterable[tuple[str, str, int]]) -> None:
        """See `Store.count`."""
        rows = [
            {"ceq": self.ceq, "batch": batch, "source": source, "kind": kind, "rows": number}
            for source, kind, number in counted
        ]
        if rows:
            with self.database.begin() as connection:
                statement: Any = _dialect(connection).insert(counts)
                keys = ["ceq", "batch", "source", "kind"]
                statement = statement.on_conflict_do_update(index_elements=keys, set_={"rows": statement.excluded.rows})
                connection.execute(statement, rows)

    def close(self) -> None:
        """See `Store.close`."""
        self._owner.close()


def _short(partition: str) -> str:
    """The partition as a key, which an index can hold whatever its length."""
    if len(partition) <= _LONGEST_KEY:
        return partition
    return f"{partition[:_LONGEST_KEY]} {hashlib.blake2b(partition.encode(), digest_size=16).hexdigest()}"


def _dialect(connection: Connection) -> Any:
    return sqlite if connection.dialect.name == "sqlite" else postgresql


def _ignoring(connection: Connection, table: Table) -> Any:
    """An insert that leaves alone what is there already."""
    return _dialect(connection).insert(table).on_conflict_do_nothing()


def _numbered(
    connection: Connection, table: Table, key: Mapping[str, Any], more: Mapping[str, Any] | None = None
) -> int:
    """The number of the row with the key, which is made if it is not there."""
    connection.execute(_ignoring(connection, table), [{**key, **(more or {})}])
    asked = select(table.c.number).where(*(table.c[name] == value for name, value in key.items()))
    number: int = connection.execute(asked).scalar_one()
    return number
