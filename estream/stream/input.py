"""Bounded input: files that stand in for streams."""

from __future__ import annotations

from pathlib import Path

from estream.errors import EStreamError

FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


def input_format(path: Path) -> str:
    """The format of a file, or of the files in a folder, by their name."""
    names = [path] if not path.is_dir() else sorted(path.rglob("*.*"))
    for name in names:
        if name.suffix in FORMATS and not name.name.startswith((".", "_")):
            return FORMATS[name.suffix]
    raise EStreamError(f"{path}: its name tells no format; input is {', '.join(FORMATS)}")
