"""How `estream --help` lists commands: in sections, each command with its whole line."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

WRITE, RUN, CHANGE, LOOK_BACK, MACHINE = (
    "Write a CEQ file",
    "Run it",
    "Change a run while it goes on",
    "See what rules did",
    "This machine and EStream itself",
)
SECTIONS = (WRITE, RUN, CHANGE, LOOK_BACK, MACHINE)
"""The sections in their order; a command names its own as its help panel."""

_WHOLE = 1000
"""More characters than a line of help has: typer cuts what is longer."""


class Sections(TyperGroup):
    """A program whose help shows commands by sections."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Write each section with its commands."""
        for section in SECTIONS:
            rows = [
                (name, command.get_short_help_str(_WHOLE))
                for name, command in self.commands.items()
                if getattr(command, "rich_help_panel", None) == section
            ]
            with formatter.section(section):
                formatter.write_dl(rows, col_max=12)
