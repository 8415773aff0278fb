"""What a new version of a CEQ file changes: which parts, and what that means for a run that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from estream.spec.checked import Checked
from estream.spec.model import SECTIONS
from estream.stream.checkpoint import Changes
from estream.stream.runner import Job


def parts_changed(before: Checked, after: Checked) -> list[str]:
    """Every named part that is new, changed or gone, in lines."""
    return [line for section, kind in SECTIONS.items() for line in _section(before, after, section, kind)]


def _section(before: Checked, after: Checked, section: str, kind: str) -> Iterator[str]:
    old, new = getattr(before.ceq, section), getattr(after.ceq, section)
    for name in new:
        if name not in old:
            yield f"{kind} {name} is new"
        elif old[name] != new[name]:
            yield f"{kind} {name} is changed"
    yield from (f"{kind} {name} is gone" for name in old if name not in new)


def needs_restart(before: Job, after: Job) -> bool:
    """Whether Spark has to be told: rules alone are changed between two micro-batches."""
    same_plan = replace(before.plan, rules=()) == replace(after.plan, rules=())
    same_parts = all(
        getattr(before.checked.ceq, section) == getattr(after.checked.ceq, section) for section in ("streams", "tables")
    )
    return not (same_plan and same_parts and before.settings == after.settings)


def state_told(changes: Changes) -> Iterator[str]:
    """What becomes of the state, in lines."""
    for word, names in (
        ("event {} keeps its partial matches", changes.kept),
        ("event {} starts empty", changes.empty),
        ("event {} is dropped with its partial matches", changes.dropped),
        ("query {} begins anew", changes.begun),
    ):
        yield from (word.format(name) for name in names)
