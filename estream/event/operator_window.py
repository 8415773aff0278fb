"""Which window queries share, and what each of them asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from estream.event.operator_aggregates import Aggregates, aggregates_of
from estream.plan.stream_operator import Columns, Extent, StreamOperator, Window
from estream.spec.expression import Attribute, Expression, walk
from estream.spec.expression_text import to_text


@dataclass(frozen=True, slots=True)
class Output:
    """What one query gives of the shared window."""

    name: str
    columns: Columns
    select: tuple[tuple[str, Expression], ...]
    having: Expression | None
    where: Expression | None


@dataclass(frozen=True, slots=True)
class SharedWindow:
    """The window of one or several queries."""

    extent: Extent
    partition: tuple[str, ...]
    cell: tuple[str, ...]
    """The columns a cell is known by: those of the partition, then of the group."""
    source: Columns
    aggregates: Aggregates
    plain: tuple[str, ...]
    """Columns that are asked for without an aggregate: those of a window's newest row."""
    outputs: tuple[Output, ...]

    @property
    def shape(self) -> str:
        """What the state depends on."""
        asked = [to_text(each) for each in self.aggregates.all]
        return f"window {self.extent} {self.partition} {self.cell} {self.plain} {asked} {self.source}"


def compile_window(queries: Sequence[StreamOperator]) -> SharedWindow:
    """The window that some queries share: the same rows, partitions, extent and groups."""
    first = queries[0]
    windows = [query.operation for query in queries if isinstance(query.operation, Window)]
    asked = [each for window in windows for each in _expressions(window)]
    aggregates = aggregates_of(asked)
    found = [aggregates.found(each) for each in asked]
    named = [part for each in found for part in walk(each) if isinstance(part, Attribute)]
    return SharedWindow(
        windows[0].extent,
        first.partition,
        tuple(dict.fromkeys((*first.partition, *windows[0].group_by))),
        first.source_columns,
        aggregates,
        tuple(dict.fromkeys(each.name for each in named if each.event is None)),
        tuple(_output(query, window, aggregates) for query, window in zip(queries, windows, strict=True)),
    )


def _expressions(window: Window) -> list[Expression]:
    return [each for _, each in window.select] + ([window.having] if window.having else [])


def _output(query: StreamOperator, window: Window, aggregates: Aggregates) -> Output:
    select = tuple((name, aggregates.found(each)) for name, each in window.select)
    having = aggregates.found(window.having) if window.having else None
    return Output(query.name, query.columns, select, having, query.where)
