"""Actions ready to be performed: one builder for each kind that a CEQ file can name."""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from estream.rule import mail, webhook
from estream.rule.callback import Loop, call
from estream.rule.detection import Detection
from estream.rule.failure import ActionFailed
from estream.rule.isolation import MEMORY, START, Isolation
from estream.rule.registry import Callback, find
from estream.rule.template import fill, in_path, lookup
from estream.rule.values import detection_as_data, detection_as_row
from estream.spec import model

Perform = Callable[[Detection, float], None]
"""Does it for a detection, in so many seconds at most; an exception says how it failed."""
Compute = Callable[[Detection], Mapping[str, Any]]
"""Gives the attributes of an event to be raised."""
Insert = Callable[[model.SqlInsert, Mapping[str, Any], str], None]
"""Inserts a row into a table, under an idempotency key."""

log: Final = logging.getLogger("estream.rules")


def _no_channels(channel: str, row: Mapping[str, Any], key: str, is_repeated: bool) -> None:
    raise ActionFailed(f"channel '{channel}' cannot be written: there are no channels here")


def _no_events(event: str, attributes: Mapping[str, Any], key: str, is_repeated: bool) -> int:
    raise ActionFailed(f"event '{event}' cannot be raised: there are no channels here")


def _no_database(insert: model.SqlInsert, row: Mapping[str, Any], key: str) -> None:
    raise ActionFailed("there is no database here")


@dataclass(frozen=True, slots=True)
class Services:
    """What actions need from the outside."""

    root: Path = Path()
    """The project's folder, which paths of files are relative to."""
    rules: Path = Path("rules")
    """The folder that callbacks come from."""
    allow_private: bool = False
    memory: int = MEMORY
    publish: Callable[[str, Mapping[str, Any], str, bool], None] = _no_channels
    """Appends a row to a channel, once for its key; the last argument says whether it may be there already."""
    raise_event: Callable[[str, Mapping[str, Any], str, bool], int] = _no_events
    """Appends an event to its channel in the same way, and gives the time it has there, in microseconds."""
    insert: Insert = _no_database
    loop: Loop = field(default_factory=Loop)


def _nothing() -> None:
    return


@dataclass(frozen=True, slots=True)
class Action:
    """An action of a rule."""

    kind: str
    name: str
    """For people: what it calls, with nothing secret in it."""
    perform: Perform
    sink: str | None = None
    """What a circuit breaker watches, of callbacks whether they hang; None for what cannot be down as a whole."""
    patience: float = 0.0
    """Seconds it may take beyond its time-out to begin and to clean up."""
    is_remote: bool = False
    """Whether it reaches others, who notice when it is repeated: then its record is never far behind."""
    close: Callable[[], None] = _nothing


def build_action(spec: model.Action, services: Services, compute: Compute) -> Action:
    """The action of a CEQ file; `CallbackError` says why a callback cannot be used."""
    match spec:
        case model.PythonAction():
            return _python(spec, services)
        case model.LogAction():
            return _log(spec)
        case model.FileAction():
            return _file(spec.file, services.root)
        case model.WebhookAction():
            return _webhook(spec.webhook, services)
        case model.EmailAction():
            server = f"{spec.email.host.shown}:{spec.email.port}"
            return Action("email", server, lambda d, s: mail.send(spec.email, d, s), f"email {server}", is_remote=True)
        case model.SqlAction():
            return _sql(spec.sql, services)
        case model.PublishAction():
            return _publish(str(spec.publish), services)
        case model.RaiseAction():
            event = str(spec.raise_.event)
            return Action("raise", event, lambda d, s: d.raiser(event, compute(d)), f"event {event}", is_remote=True)


def callback_action(function: Callback, name: str, services: Services) -> Action:
    """An action that calls a function in this process."""

    def perform(detection: Detection, seconds: float) -> None:
        call(function, detection, seconds, services.loop)

    return Action("python", name, perform, f"python {name}")


def _python(spec: model.PythonAction, services: Services) -> Action:
    function = find(services.rules, spec.python, "action")
    if not spec.isolate:
        return callback_action(function, str(spec.python), services)
    isolation = Isolation(services.rules.resolve(), str(spec.python), services.memory)
    return Action("python", str(spec.python), isolation.perform, f"python {spec.python}", START, close=isolation.close)


def _log(spec: model.LogAction) -> Action:
    level = logging.getLevelNamesMapping()[spec.level.upper()]

    def perform(detection: Detection, seconds: float) -> None:
        text = fill(spec.log, detection.detected)
        log.log(level, "%s: %s", detection.rule, text, extra={"key": detection.idempotency_key})

    return Action("log", spec.level, perform)


def _file(spec: model.File, root: Path) -> Action:
    def perform(detection: Detection, seconds: float) -> None:
        path = root / fill(spec.path, detection.detected, in_path)
        data = {"rule": detection.rule, "key": detection.idempotency_key, **detection_as_data(detection.detected)}
        line = json.dumps(data, ensure_ascii=False).encode("utf-8") + b"\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _append(path, line)
        except OSError as error:
            raise ActionFailed(f"{path.name}: {(error.strerror or 'cannot be written').lower()}") from None

    return Action("file", spec.path.shown, perform, f"file {spec.path.shown}")


def _append(path: Path, line: bytes) -> None:
    """Append a line whole or not at all; lines of several writers never mix."""
    opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.write(opened, line)
            return
        fcntl.flock(opened, fcntl.LOCK_EX)
        before = os.fstat(opened).st_size
        if os.write(opened, line) < len(line):
            # A disk that is nearly full takes a part of it.
            os.ftruncate(opened, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(opened)


def _webhook(hook: model.Webhook, services: Services) -> Action:
    most = hook.timeout.microseconds / 1e6 if hook.timeout else float("inf")

    def perform(detection: Detection, seconds: float) -> None:
        webhook.send(hook, detection, min(seconds, most), services.allow_private)

    return Action("webhook", hook.url.shown, perform, f"webhook {hook.url.shown}", is_remote=True)


def _sql(spec: model.SqlInsert, services: Services) -> Action:
    def perform(detection: Detection, seconds: float) -> None:
        row = {str(column): _column(text, detection) for column, text in spec.values.items()}
        services.insert(spec, row, detection.idempotency_key)

    return Action("sql", str(spec.table), perform, f"sql {spec.url.shown} {spec.table}", is_remote=True)


def _column(template: str, detection: Detection) -> Any:
    """A template that is one value alone keeps the value's type."""
    inner = template.strip()
    if inner.startswith("{") and inner.endswith("}") and inner.count("{") == 1:
        event, _, name = inner[1:-1].strip().rpartition(".")
        return lookup(detection.detected, event or None, name)
    return fill(template, detection.detected)


def _publish(channel: str, services: Services) -> Action:
    def perform(detection: Detection, seconds: float) -> None:
        key = detection.idempotency_key
        services.publish(channel, detection_as_row(detection.detected, key), key, detection.is_repeated)

    return Action("publish", channel, perform, f"channel {channel}", is_remote=True)
