"""Where a micro-batch goes: unpacked once, handed to whoever takes detections, written exactly once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from estream.plan.model import Plan
from estream.stream.detected import joined, to_lines
from estream.stream.pack import to_table

Take = Callable[[int, pa.Table], object]
"""What takes the detections of a micro-batch by its number; a number may come again, with the same detections."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a micro-batch gave."""

    batch: int
    detections: pa.Table
    late: tuple[tuple[str, pa.Table], ...]
    dead: tuple[tuple[str, pa.Table], ...]
    progress: dict[str, Any] | None
    told: tuple[tuple[str, dict[str, Any]], ...]
    """Per source and partition: rows, events raised, times."""
    published: tuple[tuple[str, pa.Table], ...] = ()
    """Rows of published queries."""


def unpack(batch: int, packed: pa.Table) -> Outcome:
    """The packed rows of a micro-batch, by what they are."""
    rows = list(zip(*(packed.column(name).to_pylist() for name in ("kind", "name", "payload")), strict=True))
    status = [(name, json.loads(payload)) for kind, name, payload in rows if kind == "status"]
    return Outcome(
        batch,
        joined(_tables(rows, "detections")),
        tuple((name, to_table(payload)) for kind, name, payload in rows if kind == "late"),
        tuple((name, to_table(payload)) for kind, name, payload in rows if kind == "dead"),
        next((facts for name, facts in status if name == "progress"), None),
        tuple((name, facts) for name, facts in status if name != "progress"),
        tuple((name, to_table(payload)) for kind, name, payload in rows if kind == "published"),
    )


def _tables(rows: Iterable[tuple[str, str, bytes]], wanted: str) -> Iterable[pa.Table]:
    return (to_table(payload) for kind, _, payload in rows if kind == wanted)


class FileSink:
    """Detections as files of JSON lines in a folder, one for each micro-batch that has some.

    A file is there whole or not at all, and a micro-batch that comes again writes the same file again.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, batch: int, detections: pa.Table) -> None:
        """Write the detections of a micro-batch."""
        if detections.num_rows:
            lines = "".join(f"{line}\n" for line in to_lines(self.plan, detections))
            write_whole(self.folder / f"batch-{batch:012}.jsonl", lines.encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a crash."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with new.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
