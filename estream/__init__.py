"""EStream: continuous queries over streams, event detection and rules in one system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def emit(channel: str, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]], folder: Path | None = None) -> int:
    """Append one row or several to a channel, all or none; gives their number.

    The channel is that of the project in which the program was started, or of another folder of channels. Several
    processes may append at the same time. EStreamError tells what is wrong with the rows.
    """
    import os

    from estream.stream.channel_emit import emit_rows, find_channel, project_channels

    return emit_rows(find_channel(folder or project_channels(os.environ), channel), rows)
