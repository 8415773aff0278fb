"""EStream: continuous queries over streams, event detection and rules in one system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from estream.engine import Engine
    from estream.rule.detection import Detection
    from estream.rule.registry import action, condition

__version__ = "0.1.0"
__all__ = ["Detection", "Engine", "action", "condition", "emit"]

_LATER = {
    "Detection": "estream.rule.detection",
    "Engine": "estream.engine",
    "action": "estream.rule.registry",
    "condition": "estream.rule.registry",
}
"""What is imported when it is first asked for: `import estream` alone stays light."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'estream' has no attribute '{name}'")


def emit(channel: str, rows: Mapping[str, Any] | Sequence[Mapping[str, Any]], folder: Path | None = None) -> int:
    """Append one row or several to a channel, all or none; gives their number.

    The channel is that of the project in which the program was started, or of another folder of channels. Several
    processes may append at the same time. EStreamError tells what is wrong with the rows.
    """
    import os

    from estream.stream.channel_emit import emit_rows, find_channel, project_channels

    return emit_rows(find_channel(folder or project_channels(os.environ), channel), rows)
