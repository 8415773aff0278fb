"""Conditions of rules, asked of all detections of a micro-batch at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from estream.event.evaluate import evaluate
from estream.event.rows import arrow_type
from estream.rule.layout import Layout, constituents_of
from estream.spec.expression import Aggregate, Attribute, Expression, Operation, walk

Flags = npt.NDArray[np.bool_]
Columns = dict[tuple[str | None, str], Any]


def holds(expression: Expression, layout: Layout, table: pa.Table) -> Flags:
    """Of which detections of one event the condition is true; null is not true."""
    if not table.num_rows:
        return np.zeros(0, dtype=np.bool_)
    values = value_of(expression, layout, table)
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def value_of(expression: Expression, layout: Layout, table: pa.Table) -> Any:
    """The expression for each detection of one event, as an Arrow array."""
    batch = _Batch(layout, table)
    columns: Columns = {}
    plain = _without_aggregates(expression, batch, columns)
    for part in walk(plain):
        if isinstance(part, Attribute) and (part.event, part.name) not in columns:
            columns[part.event, part.name] = batch.last(part)
    return evaluate(plain, columns, table.num_rows)


def _without_aggregates(
    expression: Expression, batch: _Batch, columns: dict[tuple[str | None, str], Any]
) -> Expression:
    """The expression with a column in place of each aggregate."""
    if isinstance(expression, Aggregate):
        name = f"aggregate {len(columns)}"
        columns[None, name] = batch.aggregate(expression)
        return Attribute(None, name, expression.type)
    if isinstance(expression, Operation):
        operands = tuple(_without_aggregates(one, batch, columns) for one in expression.operands)
        return replace(expression, operands=operands)
    return expression


@dataclass(frozen=True, slots=True)
class _Rows:
    """The occurrences of one leaf in all detections: where they stand, and whose they are (ascending)."""

    places: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]


class _Batch:
    """The detections of one event, and the occurrences they are made of."""

    def __init__(self, layout: Layout, table: pa.Table) -> None:
        self.layout, self.table, self.count = layout, table, table.num_rows
        self.members, bounds = constituents_of(table)
        self.owners = np.repeat(np.arange(self.count), np.diff(bounds))
        self.events = self.members.field("event")
        self.known: dict[str, _Rows] = {}

    def rows(self, leaf: str) -> _Rows:
        if leaf not in self.known:
            here = pc.fill_null(pc.equal(self.events, leaf), False).to_numpy(zero_copy_only=False)
            places = np.flatnonzero(here)
            self.known[leaf] = _Rows(places, self.owners[places])
        return self.known[leaf]

    def last(self, attribute: Attribute) -> Any:
        """The attribute of the last occurrence of its leaf in each detection; null where there is none."""
        if attribute.name in ("tick", "ticks") and attribute.event not in self.layout.leaves:
            return self.table.column(attribute.name).combine_chunks().cast(arrow_type(attribute.type))
        rows = self.rows(attribute.event or "")
        chosen = np.full(self.count, -1, dtype=np.int64)
        chosen[rows.owners] = rows.places  # of several the last assignment stays
        return self.field(attribute).take(pa.array(chosen, mask=chosen < 0))

    def field(self, attribute: Attribute) -> Any:
        wanted = attribute.name.lower()
        leaf = self.layout.leaves[attribute.event or ""]
        return self.members.field(next(one.field for one in leaf if one.name.lower() == wanted))

    def aggregate(self, aggregate: Aggregate) -> Any:
        """The aggregate over all occurrences of its leaf in each detection."""
        operand = aggregate.operand
        if isinstance(operand, Attribute) and operand.event is None:
            return pa.array(np.bincount(self.rows(operand.name).owners, minlength=self.count))
        rows = self.rows(_leaf_of(aggregate))
        places = pa.array(rows.places)
        asked = [part for part in walk(operand) if isinstance(part, Attribute)] if operand is not None else []
        columns = {(part.event, part.name): self.field(part).take(places) for part in asked}
        values = pa.nulls(0) if operand is None else evaluate(operand, columns, len(places))
        return _grouped(aggregate, values, rows.owners, self.count)


def _leaf_of(aggregate: Aggregate) -> str:
    return next((part.event for part in walk(aggregate) if isinstance(part, Attribute) and part.event), "")


_COUNT_ALL = pc.CountOptions(mode="only_valid")
_AGGREGATES: Mapping[str, tuple[str, Any]] = {
    "min": ("min", None),
    "max": ("max", None),
    "sum": ("sum", None),
    "avg": ("mean", None),
    "count": ("count", _COUNT_ALL),
    "collect": ("list", None),
    "first": ("first", pc.ScalarAggregateOptions(skip_nulls=False)),
    "last": ("last", pc.ScalarAggregateOptions(skip_nulls=False)),
}


def _grouped(aggregate: Aggregate, values: Any, owners: npt.NDArray[np.int64], count: int) -> Any:
    """The aggregate by owner; of those that own nothing, null, and a count of 0."""
    function, options = _AGGREGATES[aggregate.name]
    grouped = pa.table({"owner": owners, "value": values}).group_by("owner", use_threads=False)
    found = grouped.aggregate([("value", function, options)])
    column = found.column(f"value_{function}").combine_chunks()
    places = np.full(count, -1, dtype=np.int64)
    places[found.column("owner").to_numpy()] = np.arange(found.num_rows)
    taken = column.take(pa.array(places, mask=places < 0))
    if aggregate.name == "max" and pa.types.is_floating(values.type):
        taken = _with_nan(taken, values, owners, count)
    return pc.fill_null(taken, 0) if aggregate.name == "count" else taken.cast(arrow_type(aggregate.type))


def _with_nan(taken: Any, values: Any, owners: npt.NDArray[np.int64], count: int) -> Any:
    """NaN is greater than every number; Arrow's max looks past it."""
    has = np.zeros(count, dtype=np.bool_)
    has[owners[pc.fill_null(pc.is_nan(values), False).to_numpy(zero_copy_only=False)]] = True
    return pc.if_else(pa.array(has), float("nan"), taken)
