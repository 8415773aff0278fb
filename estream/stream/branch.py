"""The branches of a Spark query: what has to be read, and which columns of it make which events.

A stream with its stateless queries is one branch, in one pass. Every other query that raises events is a branch that
reads for itself, and that Spark's own watermark holds. An event that rules raise is a branch over its channel, which
holds no watermark back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from estream.plan.model import Leaf, Plan
from estream.spec import model
from estream.spec.checked import Checked, CheckedQuery
from estream.stream.column import to_column
from estream.stream.emission import REFUSED, TIME, Emission, Fed, Publication
from estream.stream.feed import Feed, computed
from estream.stream.fuse import Fused, fuse, stream_of
from estream.stream.source import CORRUPT, open_raised, position
from estream.stream.sql_branch import Reader, sql_frame


@dataclass(frozen=True, slots=True)
class Branch:
    """A frame and the events that its rows raise; `source` is the stream whose times it marks, if it does."""

    frame: DataFrame
    source: str | None
    emissions: tuple[Emission, ...]
    fed: tuple[Fed, ...] = ()
    published: tuple[Publication, ...] = ()
    is_held: bool = False
    """Whether its rows come out behind Spark's own watermark."""


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


def branches(
    plan: Plan, checked: Checked, reader: Reader, given: Sequence[Feed], refuse_ahead: bool
) -> tuple[Branch, ...]:
    """Every branch of a plan; `refuse_ahead` if rows too far ahead of the clock are refused, as in a live run."""
    ours = computed(given)
    wanted: dict[str, _Wanted] = {feed.source: _Wanted() for feed in given}
    for feed in given:
        wanted[feed.source].feeds.append(feed)
    for leaf in (each for each in plan.leaves if not each.matched):
        if not leaf.raised and leaf.query not in ours:
            wanted.setdefault(leaf.query, _Wanted()).leaves.append(leaf)
    for query in plan.queries:
        # A run over bounded input tells what would be detected; others must not take it for what happens.
        if query.publish and query.name not in ours and reader.is_live:
            columns = tuple(column.name for column in query.columns)
            wanted.setdefault(query.name, _Wanted()).published = columns
    made = []
    for stream in plan.streams:
        members = {name: each for name, each in wanted.items() if stream_of(checked, name) == stream.name}
        made.append(_stream_branch(checked, stream.name, members, reader, refuse_ahead))
    for name, each in wanted.items():
        if stream_of(checked, name) is None:
            made.append(_query_branch(checked, name, each, reader))
    made += [_raised_branch(leaf, plan.name, reader) for leaf in plan.leaves if leaf.raised]
    return tuple(made)


@dataclass(slots=True)
class _Wanted:
    """What reads the rows of a query."""

    leaves: list[Leaf] = field(default_factory=list)
    feeds: list[Feed] = field(default_factory=list)
    published: tuple[str, ...] = ()
    """The columns that go to its channel."""


@dataclass(slots=True)
class _Choice:
    """What a branch gives, as it is put together."""

    columns: _Columns = field(default_factory=_Columns)
    masks: list[Column] = field(default_factory=list)
    emissions: list[Emission] = field(default_factory=list)
    fed: list[Fed] = field(default_factory=list)
    published: list[Publication] = field(default_factory=list)

    def add(self, query: str, wanted: _Wanted, holds: Column, of: Callable[[str], Column]) -> None:
        """Take what is wanted of a query, whose rows are those where `holds` is true."""
        for leaf in wanted.leaves:
            mask = self._mask(holds & _mask(leaf, of))
            self.emissions.append(Emission(leaf, mask, _attributes(leaf, query, self.columns, of)))
        for feed in wanted.feeds:
            columns = {name: self.columns.add(query, name, of(name)) for name in feed.columns}
            self.fed.append(Fed(feed, self._mask(holds), columns))
        if wanted.published:
            columns = {name: self.columns.add(query, name, of(name)) for name in wanted.published}
            self.published.append(Publication(query, self._mask(holds), columns))

    def _mask(self, holds: Column) -> str:
        name = f"m{len(self.masks)}"
        self.masks.append(F.coalesce(holds, F.lit(False)).alias(name))
        return name


def _stream_branch(
    checked: Checked, stream: str, members: Mapping[str, _Wanted], reader: Reader, refuse_ahead: bool
) -> Branch:
    query = checked.queries[stream]
    spec = query.spec
    if not isinstance(spec, model.Stream) or query.time is None:
        raise TypeError(f"'{stream}' is no stream")
    scan = reader.stream(stream, stream)
    ahead = (spec.max_ahead or checked.ceq.settings.stream.max_ahead).microseconds if refuse_ahead else None
    refused = _refused(scan, query, position(scan, spec), ahead)
    fused = fuse(reader.session, checked, stream, scan, refused, set(members))
    choice = _Choice()
    for name, wanted in members.items():
        choice.add(name, wanted, fused.holds(name), _of(fused, name))
    time = F.unix_micros(fused.column(stream, query.time)).alias(TIME)
    frame = fused.frame.select(time, fused.refused.alias(REFUSED), *choice.masks, *choice.columns.columns)
    return Branch(frame, stream, tuple(choice.emissions), tuple(choice.fed), tuple(choice.published))


def _refused(scan: DataFrame, query: CheckedQuery, where: Column, ahead: int | None) -> Column:
    """Why a row is refused, where it was and what it is, as JSON; null for one that is right."""
    when = F.col(f"`{query.time}`")
    record = F.to_json(F.struct(*(F.col(f"`{name}`") for name in query.columns)))
    reason = F.when(when.isNull(), F.lit("it has no time"))
    if CORRUPT in scan.columns:
        record = F.coalesce(F.col(CORRUPT), record)
        reason = F.when(F.col(CORRUPT).isNotNull(), F.lit("it cannot be read")).when(when.isNull(), "it has no time")
    if ahead is not None:
        limit = F.unix_micros(F.current_timestamp()) + F.lit(ahead)
        reason = reason.when(F.unix_micros(when) > limit, F.lit("its time is too far ahead of the clock"))
    told = F.to_json(F.struct(reason.alias("reason"), where.alias("position"), record.alias("record")))
    return F.when(reason.isNotNull(), told)


def _query_branch(checked: Checked, name: str, wanted: _Wanted, reader: Reader) -> Branch:
    choice = _Choice()
    frame = sql_frame(checked, name, reader)
    choice.add(name, wanted, F.lit(True), lambda column: F.col(f"`{column}`"))
    rows = frame.select(*choice.masks, *choice.columns.columns)
    return Branch(rows, None, tuple(choice.emissions), tuple(choice.fed), tuple(choice.published), is_held=True)


def _raised_branch(leaf: Leaf, owner: str, reader: Reader) -> Branch:
    choice = _Choice()
    frame = open_raised(reader.session, leaf, reader.files, owner)
    choice.add(leaf.name, _Wanted([leaf]), F.lit(True), lambda column: F.col(f"`{column}`"))
    return Branch(frame.select(*choice.masks, *choice.columns.columns), None, tuple(choice.emissions))


def _of(fused: Fused, query: str) -> Callable[[str], Column]:
    return lambda name: fused.column(query, name)


def _mask(leaf: Leaf, of: Callable[[str], Column]) -> Column:
    return F.lit(True) if leaf.mask is None else to_column(leaf.mask, lambda attribute: of(attribute.name))


def _attributes(leaf: Leaf, query: str, columns: _Columns, of: Callable[[str], Column]) -> dict[str, str]:
    """The columns that travel, and those that the id and the time are taken from."""
    known_by = {name.lower() for name in leaf.id} or {column.name.lower() for column in leaf.columns}
    wanted = {*(name.lower() for name in leaf.needed), *known_by, leaf.time.lower()}
    names = [column.name for column in leaf.columns if column.name.lower() in wanted]
    # The time of a raised event is none of its attributes.
    return {name: columns.add(query, name, of(name)) for name in ([*names, leaf.time] if leaf.raised else names)}
