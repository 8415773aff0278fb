"""The branches of a Spark query: what has to be read, and which columns of it make which events.

A stream with its stateless queries is one branch, in one pass. Every other query that raises events is a branch that
reads for itself, and that Spark's own watermark holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from estream.errors import EStreamError
from estream.plan.model import Leaf, Plan
from estream.spec import model
from estream.spec.checked import Checked
from estream.stream.column import to_column
from estream.stream.emission import RECORD, REFUSED, TIME, Emission
from estream.stream.fuse import Fused, fuse, stream_of
from estream.stream.source import CORRUPT
from estream.stream.sql_branch import Reader, sql_frame


@dataclass(frozen=True, slots=True)
class Branch:
    """A frame and the events that its rows raise; `source` is the stream whose times it marks, if it does."""

    frame: DataFrame
    source: str | None
    emissions: tuple[Emission, ...]


@dataclass(slots=True)
class _Columns:
    """The columns chosen so far, each once."""

    chosen: dict[tuple[str, str], str] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)

    def add(self, query: str, name: str, column: Column) -> str:
        if (query, name) not in self.chosen:
            self.chosen[query, name] = f"c{len(self.columns)}"
            self.columns.append(column.alias(self.chosen[query, name]))
        return self.chosen[query, name]


def branches(plan: Plan, checked: Checked, reader: Reader, refuse_ahead: bool) -> tuple[Branch, ...]:
    """Every branch of a plan; `refuse_ahead` if rows too far ahead of the clock are refused, as in a live run."""
    by_query: dict[str, list[Leaf]] = {}
    for leaf in plan.leaves:
        if leaf.query not in checked.queries:
            raise EStreamError(f"event '{leaf.name}': raised events need a service; `estream serve` has one")
        by_query.setdefault(leaf.query, []).append(leaf)
    made = []
    for stream in plan.streams:
        members = {name: leaves for name, leaves in by_query.items() if stream_of(checked, name) == stream.name}
        made.append(_stream_branch(checked, stream.name, members, reader, refuse_ahead))
    for name, leaves in by_query.items():
        if stream_of(checked, name) is None:
            made.append(_query_branch(checked, name, leaves, reader))
    return tuple(made)


def _stream_branch(
    checked: Checked, stream: str, members: Mapping[str, list[Leaf]], reader: Reader, refuse_ahead: bool
) -> Branch:
    query = checked.queries[stream]
    spec = query.spec
    if not isinstance(spec, model.Stream) or query.time is None:
        raise TypeError(f"'{stream}' is no stream")
    scan = reader.stream(stream, stream)
    ahead = (spec.max_ahead or checked.ceq.settings.stream.max_ahead).microseconds if refuse_ahead else None
    refused = _refused(scan, query.time, ahead)
    fused = fuse(reader.session, checked, stream, scan, refused, set(members))
    columns = _Columns()
    masks: list[Column] = []
    emissions = []
    for name, leaves in members.items():
        for leaf in leaves:
            mask = f"m{len(masks)}"
            holds = fused.holds(name) & _mask(leaf, _of(fused, name))
            masks.append(F.coalesce(holds, F.lit(False)).alias(mask))
            emissions.append(Emission(leaf, mask, _attributes(leaf, name, columns, _of(fused, name))))
    time = F.unix_micros(fused.column(stream, query.time)).alias(TIME)
    whole = F.to_json(F.struct(*(fused.column(stream, name).alias(name) for name in query.columns)))
    record = F.when(fused.refused.isNotNull(), whole).alias(RECORD)
    frame = fused.frame.select(time, fused.refused.alias(REFUSED), record, *masks, *columns.columns)
    return Branch(frame, stream, tuple(emissions))


def _refused(scan: DataFrame, time: str, ahead: int | None) -> Column:
    """Why a row is refused; null for one that is right."""
    when = F.col(f"`{time}`")
    reason = F.when(when.isNull(), F.lit("it has no time"))
    if CORRUPT in scan.columns:
        unread = F.concat(F.lit("it cannot be read: "), F.col(CORRUPT))
        reason = F.when(F.col(CORRUPT).isNotNull(), unread).when(when.isNull(), F.lit("it has no time"))
    if ahead is not None:
        limit = F.unix_micros(F.current_timestamp()) + F.lit(ahead)
        reason = reason.when(F.unix_micros(when) > limit, F.lit("its time is too far ahead of the clock"))
    return reason


def _query_branch(checked: Checked, name: str, leaves: Iterable[Leaf], reader: Reader) -> Branch:
    frame = sql_frame(checked, name, reader)
    columns, emissions = _Columns(), []
    masks: list[Column] = []

    def of(column: str) -> Column:
        return F.col(f"`{column}`")

    for leaf in leaves:
        mask = f"m{len(masks)}"
        masks.append(F.coalesce(_mask(leaf, of), F.lit(False)).alias(mask))
        emissions.append(Emission(leaf, mask, _attributes(leaf, name, columns, of)))
    return Branch(frame.select(*masks, *columns.columns), None, tuple(emissions))


def _of(fused: Fused, query: str) -> Callable[[str], Column]:
    return lambda name: fused.column(query, name)


def _mask(leaf: Leaf, of: Callable[[str], Column]) -> Column:
    return F.lit(True) if leaf.mask is None else to_column(leaf.mask, lambda attribute: of(attribute.name))


def _attributes(leaf: Leaf, query: str, columns: _Columns, of: Callable[[str], Column]) -> dict[str, str]:
    """The columns that travel, and those that the id and the time are taken from."""
    known_by = {name.lower() for name in leaf.id} or {column.name.lower() for column in leaf.columns}
    wanted = {*(name.lower() for name in leaf.needed), *known_by, leaf.time.lower()}
    return {
        column.name: columns.add(query, column.name, of(column.name))
        for column in leaf.columns
        if column.name.lower() in wanted
    }
