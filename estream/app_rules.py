"""Rules at work for a plan: callbacks, channels, the history and its retention, wired together."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from estream.errors import EStreamError, Problem
from estream.event.rows import arrow_type
from estream.history.database import Database
from estream.history.insert import Inserter
from estream.history.prune import Pruner
from estream.history.store import DatabaseStore
from estream.logs import logging_to
from estream.plan.model import Plan
from estream.plan.need import RAISED_TIME
from estream.rule.action import Services
from estream.rule.agenda import Agenda
from estream.rule.failure import ActionFailed
from estream.rule.registry import Callback
from estream.rule.rule import build_rules, check_callbacks
from estream.settings import Settings
from estream.spec.checked import Checked
from estream.stream.channel import Channel

DRAIN = 30.0
"""Seconds that detached firings have to run when the stream has ended; what is left runs after the next start."""
_TIMESTAMP = pa.timestamp("us", "UTC")
_PUBLISHED = {"key": pa.string(), "event": pa.string(), "id": pa.int64(), "start": _TIMESTAMP, "end": _TIMESTAMP}
"""The first columns of a channel that detections are published to."""


def check_imports(checked: Checked, settings: Settings, root: Path) -> list[Problem]:
    """What is wrong with the callbacks of a file: imports, marks, signatures. Their modules are imported."""
    return check_callbacks(checked, Services(root, root / settings.paths.rules))


@contextmanager
def rules_at_work(
    checked: Checked,
    plan: Plan,
    settings: Settings,
    root: Path,
    channels: Path,
    callbacks: Mapping[str, Sequence[Callback]] | None = None,
) -> Iterator[Agenda]:
    """The agenda of a plan, started: its `take` takes the detections of each micro-batch."""
    inserter = Inserter()
    services = Services(
        root=root,
        rules=root / settings.paths.rules,
        allow_private=settings.rules.allow_private,
        publish=publisher(plan, channels),
        raise_event=raiser(plan, channels),
        insert=inserter.insert,
    )
    rules = build_rules(checked, plan, settings.rules, services, callbacks)
    with ExitStack() as opened:
        opened.enter_context(logging_to(settings.log))
        opened.callback(inserter.close)
        database = Database(settings.history.url, root)
        opened.callback(database.close)
        agenda = Agenda(rules, DatabaseStore(database, plan.name), settings.rules, services)
        opened.callback(agenda.close)
        agenda.start()
        pruner = Pruner(database, settings.history.keep.microseconds)
        pruner.start()
        opened.callback(pruner.close)
        # What is loaded by now stays: the collector need not look through it again and again while detections come.
        gc.collect()
        gc.freeze()
        opened.callback(gc.unfreeze)
        yield agenda
        agenda.drain(DRAIN)


def raiser(plan: Plan, channels: Path) -> Callable[[str, Mapping[str, Any]], int]:
    """Appends raised events to the channels of their names; the time of the append is the event's time."""
    schemas = {
        leaf.name: pa.schema(
            [(RAISED_TIME, _TIMESTAMP), *((column.name, arrow_type(column.type)) for column in leaf.columns)]
        )
        for leaf in plan.leaves
        if leaf.raised
    }

    def raise_event(event: str, attributes: Mapping[str, Any]) -> int:
        schema = schemas[event]
        channel = Channel(channels / event).create(schema, RAISED_TIME)
        offset = _append(channel, [{RAISED_TIME: None, **attributes}], schema)
        return next(iter(channel.read(offset, 1))).appended

    return raise_event


def publisher(plan: Plan, channels: Path) -> Callable[[str, Sequence[Mapping[str, Any]]], None]:
    """Appends detections to channels, as flat rows with the columns of all leaves of their event."""
    kinds = {
        leaf.name: [(f"{leaf.name}_{column.name}", arrow_type(column.type)) for column in leaf.columns]
        for leaf in plan.leaves
    }

    def publish(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        events = {str(row["event"]) for row in rows}
        leaves = {leaf for one in plan.subscriptions if one.event in events for leaf in plan.nodes[one.node].leaves}
        columns = [column for leaf in kinds if leaf in leaves for column in kinds[leaf]]
        schema = pa.schema([*_PUBLISHED.items(), *columns])
        _append(Channel(channels / name).create(schema, "end"), rows, schema)

    return publish


def _append(channel: Channel, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> int:
    try:
        return channel.append(pa.Table.from_pylist([dict(row) for row in rows], schema=schema))
    except (EStreamError, OSError, pa.ArrowException) as error:
        raise ActionFailed(f"channel '{channel.name}' refuses the row: {error}") from None
