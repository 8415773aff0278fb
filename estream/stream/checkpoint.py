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
from estream.spec import model
from estream.spec.checked import Checked
from estream.stream.feed import computed, feeds
from estream.stream.fuse import stream_of
from estream.stream.host_state import operator_name
from estream.stream.layout import routes
from estream.stream.sink import write_whole

VERSION = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a plan fixes in its checkpoint, and what it keeps there."""

    shards: int
    queries: Mapping[str, str]
    """Queries that Spark keeps state for, or that read by scans of their own: name to a digest of all they are."""
    nodes: Mapping[str, str]
    """Where a node's state is kept, and its signature, to the expression, for people."""
    events: Mapping[str, str]
    """Composite event to where its node's state is kept, and its signature."""
    operators: Mapping[str, str] = field(default_factory=dict)
    """Query that EStream itself keeps state for to where and in which shape it is kept."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Stream to a digest of where its rows come from: offsets of one source mean nothing to another."""
    order: str = "event_time"
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Changes:
    """What a plan changes of a checkpoint."""

    is_new: bool = False
    kept: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()
    """Queries that EStream itself keeps state for, and that begin anew."""
    refused: tuple[str, ...] = field(default=())
    """Why it cannot go on from the checkpoint, one sentence each."""


def manifest_of(plan: Plan, checked: Checked, shards: int) -> Manifest:
    """What a plan would write."""
    given = feeds(plan, checked)
    ours = computed(given)
    raising = {leaf.query for leaf in plan.leaves if leaf.query in checked.queries} | {feed.source for feed in given}
    raising |= {query.name for query in plan.queries if query.publish}
    own = [name for name in sorted(raising) if stream_of(checked, name) is None and name not in ours]
    # What is relayed stands in the later route too, where nothing feeds it: the earlier one is its home.
    homes = {node.signature: route.label for route in reversed(routes(plan, ours)) for node in route.nodes}
    kept = {node.number: f"{homes.get(node.signature, '')} {node.signature}" for node in plan.nodes}
    waiting = [node for node in plan.nodes if node.operator not in ("leaf", "temporal", "relay")]
    return Manifest(
        shards,
        {name: _digest(checked, name) for name in own},
        {kept[node.number]: node.text for node in waiting},
        {event: kept[number] for event, number in plan.events},
        {
            query.name: _hash([operator_name(feed.label, operator), operator.shape])
            for feed in given
            for operator in feed.chain().operators
            for query in operator.queries
        },
        {name: _source(one.spec) for name, one in checked.queries.items() if isinstance(one.spec, model.Stream)},
        plan.order,
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
        begun=tuple(name for name, kept in after.operators.items() if before.operators.get(name) != kept),
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
    if before.order != after.order:
        yield f"it was made with order: {before.order}; the file says {after.order}"
    for name, source in before.sources.items():
        if after.sources.get(name, source) != source:
            yield f"stream '{name}' has another source; give the stream another name"
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
    return _hash(sorted(facts))


def _source(stream: model.Stream) -> str:
    """Where the rows of a stream come from; how many are taken at a time may change."""
    facts = stream.source.model_dump(mode="json")
    facts["options"] = {key: value for key, value in facts["options"].items() if not key.lower().startswith("max")}
    return _hash(facts)


def _hash(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, default=str, sort_keys=True).encode()).hexdigest()[:16]
