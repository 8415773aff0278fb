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
from estream.rule.action import Services
from estream.rule.agenda import Agenda
from estream.rule.failure import ActionFailed, ActionRefused
from estream.rule.registry import Callback
from estream.rule.rule import build_rules, check_callbacks
from estream.settings import Settings, bytes_of
from estream.spec.checked import Checked
from estream.stream.channel import Channel
from estream.stream.raised import raised_channel

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
    is_stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Agenda]:
    """The agenda of a plan, started: its `take` takes the detections of each micro-batch.

    Once it `is_stopping`, a history that is away is not waited for.
    """
    inserter = Inserter()
    services = Services(
        root=root,
        rules=root / settings.paths.rules,
        allow_private=settings.rules.allow_private,
        memory=bytes_of(settings.rules.memory),
        publish=publisher(plan, channels),
        raise_event=raiser(checked, channels),
        insert=inserter.insert,
    )
    rules = build_rules(checked, plan, settings.rules, services, callbacks)
    with ExitStack() as opened:
        opened.enter_context(logging_to(settings.log))
        opened.callback(inserter.close)
        database = Database(settings.history.url, root)
        opened.callback(database.close)
        store = DatabaseStore(database, plan.name)
        agenda = Agenda(rules, store, settings.rules, services, is_stopping=is_stopping)
        opened.callback(agenda.close)
        agenda.start()
        periods = {name: rule.throttle for name, rule in rules.rules.items() if rule.throttle is not None}
        pruner = Pruner(database, settings.history.keep.microseconds, plan.name, periods)
        pruner.start()
        opened.callback(pruner.close)
        # What is loaded by now stays: the collector need not look through it again and again while detections come.
        gc.collect()
        gc.freeze()
        opened.callback(gc.unfreeze)
        yield agenda
        agenda.drain(DRAIN)


def raiser(checked: Checked, channels: Path) -> Callable[[str, Mapping[str, Any], str, bool], int]:
    """Appends raised events to the channels of their names; the time of the append is the event's time."""
    kinds = {name: event.columns or {} for name, event in checked.events.items() if event.kind == "raised"}

    def raise_event(event: str, attributes: Mapping[str, Any], key: str, is_repeated: bool) -> int:
        return _append(event, lambda: raised_channel(channels, event, kinds[event]), attributes, key, is_repeated)

    return raise_event


def publisher(plan: Plan, channels: Path) -> Callable[[str, Mapping[str, Any], str, bool], None]:
    """Appends detections to channels, as flat rows with the columns of all leaves of their event."""
    kinds = {
        leaf.name: [(f"{leaf.name}_{column.name}", arrow_type(column.type)) for column in leaf.columns]
        for leaf in plan.leaves
    }

    def publish(name: str, row: Mapping[str, Any], key: str, is_repeated: bool) -> None:
        leaves = {
            leaf for one in plan.subscriptions if one.event == row["event"] for leaf in plan.nodes[one.node].leaves
        }
        columns = [column for leaf in kinds if leaf in leaves for column in kinds[leaf]]
        schema = pa.schema([*_PUBLISHED.items(), *columns])
        _append(name, lambda: Channel(channels / name).create(schema, "end"), row, key, is_repeated)

    return publish


def _append(name: str, opened: Callable[[], Channel], row: Mapping[str, Any], key: str, is_repeated: bool) -> int:
    """Append a row, null where it gives nothing; gives the time of the append."""
    try:
        channel = opened()
        return channel.append_once(pa.Table.from_pylist([dict(row)], schema=channel.schema), key, is_repeated)
    except (EStreamError, pa.ArrowException, OverflowError) as error:
        raise ActionRefused(f"channel '{name}' refuses the row: {error}") from None
    except OSError as error:
        raise ActionFailed(f"channel '{name}' cannot be written: {error.strerror or error}") from None
