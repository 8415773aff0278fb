"""What will run, for people and programs: as a tree, as JSON, as a graph for dot or mermaid."""

from __future__ import annotations

from typing import Literal, TypeAlias

from estream.plan.explain_graph import to_dot, to_mermaid
from estream.plan.explain_json import to_json
from estream.plan.model import Plan
from estream.plan.select import select as selected

Format: TypeAlias = Literal["text", "json", "dot", "mermaid"]

_FORMATS = {"json": to_json, "dot": to_dot, "mermaid": to_mermaid}


def explain(
    plan: Plan, format: Format = "text", select: str | None = None, width: int | None = None, color: bool = False
) -> str:
    """The plan, or the part of it around `select`, in a format. EStreamError if nothing has the selected name.

    `width` and `color` are those of a terminal: they matter to text only, whose lines are else as long as they are.
    """
    shown = selected(plan, select) if select else plan
    if format != "text":
        return _FORMATS[format](shown)
    from estream.plan.explain_tree import to_tree  # the other formats do not wait for a terminal's library

    return to_tree(shown, width, color)
