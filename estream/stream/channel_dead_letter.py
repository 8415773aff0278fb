"""Dead letters: records that could not be read, kept with where they came from and why, while the query goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from estream.stream.channel import Channel
from estream.stream.channel_schema import arrow_schema

DEAD_LETTERS: Final = "dead_letters"
"""The name of their channel."""
DEAD_LETTER_SCHEMA: Final = arrow_schema(
    {"ts": "timestamp", "source": "string", "position": "string", "reason": "string", "record": "string"}
)
_LONGEST_RECORD: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that was refused."""

    source: str
    """The stream it came by."""
    position: str
    """Its offset, line or file, as the source counts."""
    reason: str
    record: str
    """The record as it was; a long one is cut."""


def dead_letters(folder: Path) -> Channel:
    """The channel of dead letters in the folder of channels; it is made if it is not there."""
    return Channel(folder / DEAD_LETTERS).create(DEAD_LETTER_SCHEMA, time="ts")


def bury(channel: Channel, letters: Sequence[DeadLetter], writer: str = "", version: int = 0) -> None:
    """Append dead letters; with a writer and a version, a repeated micro-batch buries none twice."""
    if not letters:
        return
    rows = [
        {
            "source": letter.source,
            "position": letter.position,
            "reason": letter.reason,
            "record": letter.record[:_LONGEST_RECORD],
        }
        for letter in letters
    ]
    channel.append(pa.Table.from_pylist(rows, DEAD_LETTER_SCHEMA), writer=writer, version=version)
