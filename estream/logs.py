"""What EStream says of its work, on the standard error: lines for people or JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO

from estream.report import printable
from estream.settings import LogSettings


class _Lines(logging.Formatter):
    """`2026-12-24T16:00:00Z warning rules: AccidentNotify: accident in segment 7`."""

    def format(self, record: logging.LogRecord) -> str:
        name = record.name.removeprefix("estream.")
        text = printable(" ".join(record.getMessage().splitlines()))
        told = f"{_time(record)} {record.levelname.lower()} {name}: {text}"
        # Only the log of debugging has what an exception came from.
        return f"{told}\n{self.formatException(record.exc_info)}" if record.exc_info else told


class _Json(logging.Formatter):
    """One JSON object a line, with the idempotency key of a firing where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        key = getattr(record, "key", None)
        return json.dumps({**said, "key": key} if key else said, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@contextmanager
def logging_to(settings: LogSettings, out: TextIO | None = None) -> Iterator[None]:
    """Log what the settings ask for, from EStream and from callbacks, as long as it is needed."""
    handler = logging.StreamHandler(out or sys.stderr)
    handler.setFormatter(_Json() if settings.format == "json" else _Lines())
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    root, own = logging.getLogger(), logging.getLogger("estream")
    before = own.level
    handler.setLevel(level)
    own.setLevel(level)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        own.setLevel(before)
