"""Stream operators beyond SQL on columns: compile a query, begin, step batch by batch.

A step takes any rows in and gives what is certain at the watermark. What comes out, all steps together, depends on
the rows alone: not on their arrival within the watermark, the batches, or how often the state was saved and loaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from estream.errors import EStreamError
from estream.event.arrow_types import ARROW_TYPES
from estream.event.columns import nulls_of, one_chunk
from estream.event.modify import Modifier, begin_modify, compile_modify, step_modify
from estream.event.operator_order import Buffer, Released, release
from estream.event.operator_store import Kept
from estream.event.operator_window import SharedWindow, compile_window
from estream.event.rows import arrow_type
from estream.event.unique import FirstOrLast, begin_unique, compile_unique, step_unique
from estream.event.window import begin_window, filtered, step_window
from estream.event.words import FOREVER
from estream.plan.stream_operator import Modify, StreamOperator, Unique, Window
from estream.spec.types import DataType

Computation: TypeAlias = Modifier | SharedWindow | FirstOrLast | None


@dataclass(frozen=True, slots=True)
class Operator:
    """One query, or several that share a window, ready to run."""

    queries: tuple[StreamOperator, ...]
    computation: Computation
    source: pa.Schema
    arrival: bool
    """True: rows are taken as they come (`order: arrival`)."""

    @property
    def shape(self) -> str:
        """Equal for operators that can go on with each other's state."""
        return "" if self.computation is None else self.computation.shape


@dataclass(slots=True)
class OperatorState:
    """Everything that `step` moves."""

    buffer: Buffer
    kept: Kept
    saved: dict[str, int] = field(default_factory=dict)
    """Checksums of the segments of the last save."""


def compile_operator(*queries: StreamOperator, arrival: bool = False) -> Operator:
    """The operator of a query, or of several that share a window (`estream.event.operator_chain` finds them)."""
    first = queries[0]
    for name, kind in first.source_columns:
        if not _carried(kind):
            found = str(kind) if kind.is_known else "of a type that only Spark can tell"
            way = "give plain columns, or cast it, in SQL"
            raise EStreamError(
                f"query '{first.name}' reads column '{name}' of '{first.source}', which is {found}; {way}"
            )
    source = pa.schema([(name, arrow_type(kind)) for name, kind in first.source_columns])
    return Operator(queries, _computation(queries), source, arrival)


def _carried(kind: DataType) -> bool:
    """Whether a column of the type can go through an operator."""
    return kind.name in ARROW_TYPES or kind.name == "decimal" or (kind.element is not None and _carried(kind.element))


def _computation(queries: Sequence[StreamOperator]) -> Computation:
    query = queries[0]
    match query.operation:
        case Modify() as modify:
            return compile_modify(query, modify)
        case Unique() as unique:
            made = compile_unique(query, unique)
            return compile_window([made]) if isinstance(made, StreamOperator) else made
        case Window():
            return compile_window(queries)
    return None


def begin(operator: Operator) -> OperatorState:
    """The state of an operator that has seen nothing."""
    empty = operator.source.empty_table()
    return OperatorState(Buffer(empty, empty), _begun(operator.computation))


def _begun(computation: Computation) -> Kept:
    match computation:
        case Modifier():
            return begin_modify(computation)
        case SharedWindow():
            return begin_window(computation)
        case FirstOrLast():
            return begin_unique(computation)
    return Kept()


def step(
    operator: Operator, state: OperatorState, batch: pa.Table, watermark: int, end_of_input: bool = False
) -> pa.Table:
    """Take a batch in and give the output rows that are certain at the watermark; at the end of input all there are.

    `batch` has the columns of the query's source. Text may be encoded by dictionaries, and may then come out encoded.
    Rows that came too late are in `state.buffer.late`.
    """
    return next(iter(step_each(operator, state, batch, watermark, end_of_input).values()))


def step_each(
    operator: Operator, state: OperatorState, batch: pa.Table, watermark: int, end_of_input: bool = False
) -> dict[str, pa.Table]:
    """As `step`, for every query that shares the operator, by its name."""
    query, buffer = operator.queries[0], state.buffer
    rows = as_source(operator.source, batch)
    limit = FOREVER if end_of_input else watermark
    released = release(buffer, rows, query.source_time, limit, operator.arrival)
    released = _with_keys(query.partition, buffer.counts, _in_span(query.span, released))
    now = max(buffer.watermark, buffer.greatest) if operator.arrival else buffer.watermark
    tables = _stepped(operator, state.kept, released, now)
    return {query.name: table for query, table in zip(operator.queries, tables, strict=True)}


def as_source(source: pa.Schema, batch: pa.Table) -> pa.Table:
    """The columns of the source, in its types; text may be dictionary-encoded, which saves work."""
    if batch.schema.equals(source):
        return batch
    columns = [
        column
        if pa.types.is_dictionary(column.type) and column.type.value_type == field.type
        else column.cast(field.type)
        for field in source
        for column in [batch.column(field.name)]
    ]
    return pa.table(columns, names=source.names)


def _in_span(span: tuple[int | None, int | None], released: Released) -> Released:
    """The rows that the query takes: the others move time, but not the operator."""
    start, stop = span
    if start is not None:
        released = released.filter(released.time >= start)
    return released if stop is None else released.filter(released.time < stop)


def _with_keys(partition: tuple[str, ...], counts: Counter[str], released: Released) -> Released:
    """The rows that have a partition; those with a null in the key are counted."""
    missing = [nulls for name in partition if (nulls := nulls_of(one_chunk(released.rows.column(name)))) is not None]
    if not missing:
        return released
    nowhere = np.logical_or.reduce(missing)
    counts["null_key"] += int(nowhere.sum())
    return released.filter(~nowhere)


def _stepped(operator: Operator, kept: Kept, released: Released, now: int) -> tuple[pa.Table, ...]:
    where = operator.queries[0].where
    match operator.computation:
        case SharedWindow() as window:
            return step_window(window, kept, released, now)
        case Modifier() as modifier:
            return (filtered(step_modify(modifier, kept, released, now), where),)
        case FirstOrLast() as unique:
            return (filtered(step_unique(unique, kept, released, now), where),)
    return (filtered(released.rows, where),)
