"""What a checkpoint was made with, kept beside Spark's own: our signatures decide what may be changed in place.

Spark takes a changed window over old state without a word. So what cannot be changed is told before anything starts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from estream.errors import EStreamError
from estream.plan.model import Plan
from estream.spec.checked import Checked
from estream.stream.fuse import stream_of
from estream.stream.sink import write_whole

VERSION = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a plan fixes in its checkpoint, and what it keeps there."""

    shards: int
    queries: Mapping[str, str]
    """Queries that Spark keeps state for, or that read by scans of their own: name to a digest of all they are."""
    nodes: Mapping[str, str]
    """Signature to the expression, for people."""
    events: Mapping[str, str]
    """Composite event to the signature of its node."""
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Changes:
    """What a plan changes of a checkpoint."""

    is_new: bool = False
    kept: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    refused: tuple[str, ...] = field(default=())
    """Why it cannot go on from the checkpoint, one sentence each."""


def manifest_of(plan: Plan, checked: Checked, shards: int) -> Manifest:
    """What a plan would write."""
    raising = sorted({leaf.query for leaf in plan.leaves if leaf.query in checked.queries})
    own = [name for name in raising if stream_of(checked, name) is None]
    waiting = [node for node in plan.nodes if node.operator not in ("leaf", "temporal", "relay")]
    return Manifest(
        shards,
        {name: _digest(checked, name) for name in own},
        {node.signature: node.text for node in waiting},
        {event: plan.nodes[number].signature for event, number in plan.events},
    )


def compare(before: Manifest | None, after: Manifest) -> Changes:
    """What goes on, what starts empty, what is dropped, and what stands in the way."""
    if before is None:
        return Changes(is_new=True, empty=tuple(after.events))
    kept = tuple(event for event, signature in after.events.items() if signature in before.nodes)
    return Changes(
        kept=kept,
        empty=tuple(event for event in after.events if event not in kept),
        dropped=tuple(event for event, signature in before.events.items() if signature not in after.nodes),
        refused=tuple(_refused(before, after)),
    )


def read_manifest(folder: Path) -> Manifest | None:
    """What the checkpoint in a folder was made with; None if there is none."""
    path = folder / "estream.json"
    if not path.exists():
        return None
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts["version"] > VERSION:
            raise EStreamError(f"{path} was written by a newer EStream; use that, or another checkpoint")
        return Manifest(**facts)
    except (ValueError, TypeError, KeyError) as error:
        raise EStreamError(f"{path} is damaged; use another checkpoint") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Keep what a checkpoint is made with."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "estream.json", json.dumps(asdict(manifest), indent=2).encode())


def _refused(before: Manifest, after: Manifest) -> Iterator[str]:
    if before.shards != after.shards:
        yield (
            f"it was made with {before.shards} shards, the settings say {after.shards}; "
            f"set detection.shards to {before.shards}"
        )
    for name in sorted({*before.queries, *after.queries}):
        if name not in after.queries:
            yield f"query '{name}' is gone, and Spark keeps state for it"
        elif name not in before.queries:
            yield f"query '{name}' is new, and Spark would have to keep state for it"
        elif before.queries[name] != after.queries[name]:
            yield f"query '{name}' has changed, and Spark keeps state for the old one"


def _digest(checked: Checked, name: str) -> str:
    """All that a query is, and all it reads."""
    facts, seen, pending = [], set(), [name]
    while pending:
        current = pending.pop()
        if current in seen or current not in checked.queries:
            continue
        seen.add(current)
        query = checked.queries[current]
        fixed = {"description", "publish", "idle_after", "max_ahead", "source"}
        facts.append([current, query.spec.model_dump(mode="json", exclude=fixed), list(query.columns)])
        pending += query.reads
    return hashlib.sha256(json.dumps(sorted(facts), default=str).encode()).hexdigest()[:16]
