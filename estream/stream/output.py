"""Detections in one file: lines of JSON, or Parquet, by the name of the file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from estream.errors import EStreamError
from estream.plan.model import Plan
from estream.stream.detected import to_lines

FORMATS = (".jsonl", ".parquet")


def require_output(path: Path) -> None:
    """Refuse a file whose name tells no format."""
    if path.suffix not in FORMATS:
        raise EStreamError(f"{path}: detections are written as .jsonl or .parquet; name the file so")


def write_detections(path: Path, plan: Plan, detections: pa.Table) -> None:
    """Write all detections; the file is there whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(detections, new)
    else:
        with new.open("w", encoding="utf-8") as opened:
            opened.writelines(f"{line}\n" for line in to_lines(plan, detections))
    new.replace(path)
