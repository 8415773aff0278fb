"""The record of changes that were made of runs while they went on."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import insert, select

from estream.history.database import Database
from estream.history.tables import changes
from estream.rule.detection import now
from estream.stream.change import Answer, Request


@dataclass(frozen=True, slots=True)
class Changed:
    """One change. Times are microseconds since the epoch."""

    number: int
    ceq: str
    at: int
    by: str
    request: str
    batch: int | None
    """The first micro-batch of the new version."""
    watermark: int | None
    """The watermark that the version before it had reached."""
    told: tuple[str, ...]


def record_change(database: Database, ceq: str, request: Request, answer: Answer) -> None:
    """Write down a change that has taken effect."""
    row = {
        "ceq": ceq, "at": now(), "by": request.by, "request": request.text, "batch": answer.batch,
        "watermark": answer.watermark, "told": json.dumps(answer.told),
    }  # fmt: skip
    with database.begin() as connection:
        connection.execute(insert(changes), [row])


def list_changes(database: Database, ceq: str | None = None, limit: int = 50) -> list[Changed]:
    """The changes of a file, or of all, the latest first."""
    asked = select(changes).order_by(changes.c.number.desc()).limit(limit)
    if ceq is not None:
        asked = asked.where(changes.c.ceq == ceq)
    with database.begin() as connection:
        rows = connection.execute(asked).mappings().all()
    return [Changed(**{**row, "told": tuple(json.loads(row["told"]))}) for row in rows]
