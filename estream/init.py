"""`estream init`: a small project that passes `estream check`."""

from __future__ import annotations

import json
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from estream.errors import EStreamError
from estream.spec.schema import json_schema

SCHEMA = "ceq.schema.json"
"""The schema file that the project's CEQ files name in their first line."""


def create(folder: Path) -> tuple[Path, ...]:
    """Write the project into a new or empty folder; gives the files made."""
    if folder.exists() and not folder.is_dir():
        raise EStreamError(f"{folder}: this is a file; name a new or empty folder")
    if folder.exists() and any(folder.iterdir()):
        raise EStreamError(f"{folder}: the folder is not empty; name a new or empty one")
    files = {name: source.read_text(encoding="utf-8") for name, source in _templates()}
    files[SCHEMA] = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    try:
        return tuple(_write(folder / name, text) for name, text in sorted(files.items()))
    except OSError as error:
        raise EStreamError(f"{error.filename or folder}: {error.strerror}") from error


def _templates() -> list[tuple[str, Traversable]]:
    """Every file of the template, by its path in the project."""

    def below(place: Traversable, prefix: str) -> list[tuple[str, Traversable]]:
        found: list[tuple[str, Traversable]] = []
        for entry in place.iterdir():
            if entry.is_dir() and entry.name != "__pycache__":
                found += below(entry, f"{prefix}{entry.name}/")
            elif entry.is_file():
                found.append((prefix + entry.name, entry))
        return found

    return below(resources.files("estream") / "template", "")


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
