"""EStream's own stream operators as they will run: what a query computes, of which rows, in which partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from estream.spec import model
from estream.spec.check_times import microseconds
from estream.spec.checked import Checked, CheckedQuery
from estream.spec.expression import Expression
from estream.spec.types import DataType, spelling
from estream.spec.window_time import output_delay
from estream.text import Text

Columns: TypeAlias = tuple[tuple[str, DataType], ...]
"""Columns in order, with their types."""
_Spelled: TypeAlias = Callable[[Iterable[str]], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Modify:
    """A stream modifier; `window`, `every` and `until` are microseconds, `every` is given where `window` is."""

    function: Literal["adiff", "rdiff", "aslope"]
    attributes: tuple[str, ...]
    over: str | None = None
    keep: Literal["old", "new"] = "old"
    pseudo: float = 0.0
    window: int | None = None
    every: int | None = None
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a window reaches: `size` rows or microseconds, sliding row by row or in batches."""

    by: Literal["rows", "time"]
    size: int
    batch: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """Aggregates over a window, for each group of its rows."""

    extent: Extent
    select: tuple[tuple[str, Expression], ...]
    having: Expression | None = None
    group_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unique:
    """One row for each value of some columns: the first or the last, of all rows or of each window."""

    columns: tuple[str, ...]
    keep: Literal["first", "last"]
    extent: Extent | None = None


@dataclass(frozen=True, slots=True)
class StreamOperator:
    """A query that EStream computes itself. `operation` is None where `where` is all there is."""

    name: str
    source: str
    source_columns: Columns
    source_time: str
    columns: Columns
    time: str
    partition: tuple[str, ...] = ()
    operation: Modify | Window | Unique | None = None
    where: Expression | None = None
    """Asked of the rows that come out."""
    delay: int = 0
    """How far the time of a row may lie behind the moment it comes out, in microseconds."""
    span: tuple[int | None, int | None] = (None, None)
    """It takes the rows from the one time on and before the other, in microseconds."""


def stream_operator(checked: Checked, query: CheckedQuery) -> StreamOperator | None:
    """The operator that computes a checked query; None for SQL, or where nobody knows the time of its rows."""
    if not isinstance(query.spec, model.Query) or query.spec.from_ is None:
        return None
    source = checked.queries.get(query.reads[0])
    if source is None or source.time is None or query.time is None:
        return None

    def spelled(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(str(spelling(name, source.columns) or name) for name in names)

    return StreamOperator(
        name=str(query.name),
        source=str(source.name),
        source_columns=tuple((str(name), kind) for name, kind in source.columns.items()),
        source_time=str(source.time),
        columns=tuple((str(name), kind) for name, kind in query.columns.items()),
        time=str(query.time),
        partition=spelled(query.spec.partition),
        operation=_operation(query, query.spec, spelled),
        where=query.where,
        delay=_delay(query, query.spec, source.time),
        span=(_instant(query.spec.start), _instant(query.spec.stop)),
    )


def _instant(text: Text | None) -> int | None:
    """A time in microseconds; one that counts from the launch is for who launches the query to tell."""
    return None if text is None or text.startswith("in ") else microseconds(text)


def _delay(query: CheckedQuery, spec: model.Query, source_time: str) -> int:
    selected = dict(query.select).get(query.time or "")
    if spec.window is None or selected is None:
        return 0
    return output_delay(spec.window, bool(spec.group_by), source_time, selected) or 0


def _operation(query: CheckedQuery, spec: model.Query, spelled: _Spelled) -> Modify | Window | Unique | None:
    extent = _extent(spec.window) if spec.window else None
    if spec.modify is not None:
        return _modify(spec.modify, spelled)
    if spec.unique:
        return Unique(spelled(spec.unique), "last", extent)
    if spec.first_unique:
        return Unique(spelled(spec.first_unique), "first", extent)
    if extent is not None:
        return Window(extent, query.select, query.having, spelled(spec.group_by))
    return None


def _extent(window: model.Window) -> Extent:
    batch = window.slide == "batch"
    if window.time is not None:
        return Extent("time", window.time.microseconds, batch)
    return Extent("rows", window.rows or 1, batch)


def _modify(modify: model.Modify, spelled: _Spelled) -> Modify:
    window = modify.window.microseconds if modify.window else None
    return Modify(
        function=modify.function,
        attributes=spelled(modify.attributes),
        over=spelled([modify.over])[0] if modify.over else None,
        keep=modify.keep,
        pseudo=modify.pseudo,
        window=window,
        every=modify.every.microseconds if modify.every else window,
        until=microseconds(modify.until) if modify.until else None,
    )
