"""Append rows to a channel of a project by its name: what `estream emit` and `estream.emit` do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from estream.errors import EStreamError
from estream.settings import load_settings, settings_files
from estream.stream.channel import Channel
from estream.stream.channel_rows import rows_from_json, rows_from_values
from estream.stream.channel_schema import parse_columns
from estream.suggest import did_you_mean

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def project_channels(environment: Mapping[str, str]) -> Path:
    """The folder of channels of the project in which the program was started."""
    return Path(load_settings(settings_files(Path()), environment).paths.channels)


def find_channel(folder: Path, name: str, schema: str | None = None) -> Channel:
    """The channel of that name; with a schema like `ts timestamp, n int` it is made if it is not there."""
    if not _NAME.fullmatch(name):
        raise EStreamError(f"{name!r} is no name of a channel; it has letters, digits and _ and begins with no digit")
    channel = Channel(folder / name)
    if schema is not None:
        columns = parse_columns(schema)
        with _told(channel):
            return channel.create(columns)
    if not channel.exists:
        there = channel_names(folder)
        near = did_you_mean(name, there) or (f"there are {', '.join(there)}" if there else "there are none yet")
        raise EStreamError(
            f"there is no channel '{name}' in {folder}; {near}; a schema makes it: 'ts timestamp, n int'"
        )
    return channel


def channel_names(folder: Path) -> list[str]:
    """The channels of a folder."""
    return sorted(path.parent.name for path in folder.glob("*/schema.arrow"))


def emit_json(channel: Channel, lines: Iterable[str], file: str) -> int:
    """Append the rows of JSON lines, all or none; gives their number."""
    try:
        return _append(channel, rows_from_json(lines, channel.schema, file))
    except UnicodeDecodeError as error:
        raise EStreamError(f"{file}: byte {error.start} is no UTF-8; rows are JSON, one object a line") from None


def emit_rows(channel: Channel, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]] | pa.Table) -> int:
    """Append one row, several, or an Arrow table, all or none; gives their number."""
    if isinstance(rows, pa.Table):
        return _append(channel, rows)
    several = [rows] if isinstance(rows, Mapping) else list(rows)
    return _append(channel, rows_from_values(several, channel.schema, channel.name))


def _append(channel: Channel, table: pa.Table) -> int:
    if table.num_rows:
        with _told(channel):
            channel.append(table)
    return int(table.num_rows)


@contextmanager
def _told(channel: Channel) -> Iterator[None]:
    """A disk that is full or may not be written is no surprise to a user's program."""
    try:
        yield
    except OSError as error:
        raise EStreamError(
            f"channel '{channel.name}': cannot write {channel.path}: {error.strerror or error}"
        ) from None
