"""EStream's own stream operators on shards: queries that are computed together, and the rows that are fed to them.

They run in the first host stage. Their output raises events of the second one, where any partitioning can follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from estream.event.operator_chain import Chain, compile_chain
from estream.plan.model import Plan
from estream.plan.stream_operator import StreamOperator, Unique
from estream.spec.checked import Checked
from estream.stream.fuse import stream_of

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Feed:
    """Operators over the rows of one query or stream, sharded by one key."""

    source: str
    key: Key
    """Columns of the source; empty where the operators need all rows together."""
    operators: tuple[StreamOperator, ...]
    arrival: bool
    published: tuple[str, ...] = ()
    """Those of the queries whose rows go to channels."""

    @property
    def label(self) -> str:
        """What tells it from the other feeds."""
        return f"feed {self.source} {','.join(self.key)}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the source."""
        return tuple(name for name, _ in self._first.source_columns)

    @property
    def time(self) -> str:
        """The time column of the source."""
        return self._first.source_time

    @property
    def _first(self) -> StreamOperator:
        return next(operator for operator in self.operators if operator.source == self.source)

    def chain(self) -> Chain:
        """The operators, ready to run."""
        return compile_chain(self.operators, self.arrival)

    def behind(self) -> int:
        """How far the times of what comes out may lie behind the watermark, at most."""
        delays: dict[str, int] = {}
        for operator in self.operators:
            delays[operator.name] = delays.get(operator.source, 0) + operator.delay
        return max(delays.values(), default=0)


def feeds(plan: Plan, checked: Checked) -> tuple[Feed, ...]:
    """The feeds of all queries that raise events or are published, and are operators of our own."""
    own = {
        query.name: query.operator
        for query in plan.queries
        if query.operator is not None and stream_of(checked, query.name) is None
    }
    published = {query.name for query in plan.queries if query.publish}
    needed = _needed({leaf.query for leaf in plan.leaves} | published, own)
    chosen = {name: operator for name, operator in own.items() if name in needed}
    keys = _keys(chosen)
    together: dict[tuple[str, Key], list[StreamOperator]] = {}
    for operator in chosen.values():
        root = _root(operator, chosen)
        together.setdefault((root, keys[_top(operator, chosen)]), []).append(operator)
    return tuple(
        Feed(
            source,
            key,
            tuple(operators),
            plan.order == "arrival",
            tuple(operator.name for operator in operators if operator.name in published),
        )
        for (source, key), operators in sorted(together.items())
    )


def computed(given: Iterable[Feed]) -> tuple[str, ...]:
    """The queries that feeds compute."""
    return tuple(operator.name for feed in given for operator in feed.operators)


def _needed(queries: Iterable[str], own: Mapping[str, StreamOperator]) -> set[str]:
    needed: set[str] = set()
    pending = list(queries)
    while pending:
        name = pending.pop()
        if name in own and name not in needed:
            needed.add(name)
            pending.append(own[name].source)
    return needed


def _root(operator: StreamOperator, chosen: Mapping[str, StreamOperator]) -> str:
    """The first thing it reads that is no operator of ours."""
    source = operator.source
    while source in chosen:
        source = chosen[source].source
    return source


def _top(operator: StreamOperator, chosen: Mapping[str, StreamOperator]) -> str:
    """The operator next to the root."""
    while operator.source in chosen:
        operator = chosen[operator.source]
    return operator.name


def _keys(chosen: Mapping[str, StreamOperator]) -> dict[str, Key]:
    """For each operator next to a root the key that suits it and all that read it; none where they differ."""
    wanted: dict[str, set[Key]] = {}
    for operator in chosen.values():
        if operator.operation is not None:
            wanted.setdefault(_top(operator, chosen), set()).add(_key(operator))
        else:
            wanted.setdefault(_top(operator, chosen), set())
    return {top: next(iter(keys)) if len(keys) == 1 else () for top, keys in wanted.items()}


def _key(operator: StreamOperator) -> Key:
    match operator.operation:
        case Unique(columns, _, None):
            # Each value is looked at by itself.
            return operator.partition or columns
    return operator.partition
