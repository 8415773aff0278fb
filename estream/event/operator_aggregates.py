"""Aggregates of the language from the parts of windows: counts, sums, means, extremes, ends, lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.event.columns import one_chunk
from estream.event.evaluate import evaluate
from estream.event.operator_folds import Part, PartKind, Span, fold
from estream.event.operator_kernel import NONE, members
from estream.event.operator_store import Kept, Words
from estream.event.rows import arrow_type
from estream.spec.expression import Aggregate, Attribute, Expression, Operation, walk

FOUND = "#"
"""Stands as the event of attributes that are the results of aggregates."""
_PARTS: dict[str, tuple[PartKind, ...]] = {
    "count": ("count",),
    "avg": ("real", "count"),
    "stddev": ("spread",),
    "min": ("least",),
    "max": ("most",),
    "approx_count_distinct": ("distinct",),
}
_TAKEN = ("first", "min", "max", "collect")
"""Aggregates whose results are values of rows in the window."""


@dataclass(frozen=True, slots=True)
class Aggregates:
    """The aggregates some expressions ask for, each once, and the parts they are made of."""

    all: tuple[Aggregate, ...]
    parts: tuple[Part, ...]
    taken: tuple[Expression, ...]
    """Operands whose values are kept for the rows of windows."""

    @property
    def operands(self) -> tuple[Expression, ...]:
        """Everything that is summed up or kept, each once."""
        return tuple(dict.fromkeys(each.operand for each in self.all if each.operand is not None))

    def found(self, expression: Expression) -> Expression:
        """The expression with an attribute in the place of each aggregate."""
        if isinstance(expression, Aggregate):
            return Attribute(FOUND, str(self.all.index(expression)), expression.type)
        if isinstance(expression, Operation):
            return replace(expression, operands=tuple(self.found(operand) for operand in expression.operands))
        return expression


def aggregates_of(expressions: Iterable[Expression]) -> Aggregates:
    """The aggregates in some expressions."""
    asked = [part for each in expressions for part in walk(each) if isinstance(part, Aggregate)]
    every = tuple(dict.fromkeys(asked))
    parts = dict.fromkeys((kind, each.operand) for each in every if each.operand for kind in _kinds(each))
    taken = dict.fromkeys(each.operand for each in every if each.name in _TAKEN and each.operand)
    slots = enumerate(parts)
    return Aggregates(every, tuple(Part(str(slot), kind, operand) for slot, (kind, operand) in slots), tuple(taken))


def _kinds(aggregate: Aggregate) -> tuple[PartKind, ...]:
    if aggregate.name == "sum":
        return ("whole" if aggregate.type.is_integer else "real", "count")
    return _PARTS.get(aggregate.name, ())


class Results:
    """The results of aggregates for the new rows of a step."""

    def __init__(self, aggregates: Aggregates, kept: Kept, span: Span, values: Mapping[Expression, pa.Array]) -> None:
        """`values` are the operands' values of the new rows."""
        self.span, self.values, self.taken = span, values, aggregates.taken
        self.kept_values = kept.tables["values"]
        self.parts = {
            (part.kind, part.operand): fold(kept, part, span, values[part.operand]) for part in aggregates.parts
        }

    def column(self, aggregate: Aggregate, chosen: Words | slice) -> pa.Array:
        """The aggregate for the chosen new rows, as an Arrow array of its type."""
        operand, kind = aggregate.operand, arrow_type(aggregate.type)
        if operand is None:
            return pa.array(self.span.sizes[chosen])
        match aggregate.name:
            case "count" | "approx_count_distinct":
                return pa.array(self.part(aggregate, 0)[chosen])
            case "sum":
                return _unless(self.part(aggregate, 1)[chosen] == 0, self.part(aggregate, 0)[chosen])
            case "avg":
                counts = self.part(aggregate, 1)[chosen]
                return _unless(counts == 0, self.part(aggregate, 0)[chosen] / np.maximum(counts, 1))
            case "stddev":
                counts, squares = self.part(aggregate, 0)[:, chosen]
                return _unless(counts < 2, np.sqrt(squares / np.maximum(counts - 1, 1)))
            case "min" | "max":
                return self.take(operand, self.part(aggregate, 0)[chosen])
            case "first":
                return self.take(operand, self.span.lows[chosen])
            case "last":
                return _chosen(self.values[operand], chosen)
        return self.collected(operand, chosen).cast(kind)

    def part(self, aggregate: Aggregate, number: int) -> npt.NDArray[Any]:
        assert aggregate.operand is not None
        return self.parts[_kinds(aggregate)[number], aggregate.operand]

    def take(self, operand: Expression, rows: Words) -> pa.Array:
        """An operand's values of rows; null for none."""
        values = self.kept_values.column(self.taken.index(operand))
        return one_chunk(values.take(pa.array(rows, mask=rows == NONE)))

    def collected(self, operand: Expression, chosen: Words | slice) -> pa.Array:
        """Lists of all values in the windows, in the order of rows."""
        span = self.span
        sizes = span.sizes[chosen]
        rows = members(span.lows[chosen], sizes, span.rows["following"])
        offsets = np.append(0, np.cumsum(sizes))
        return pa.LargeListArray.from_arrays(pa.array(offsets), self.take(operand, rows))


def _chosen(column: pa.Array, chosen: Words | slice) -> pa.Array:
    return column if isinstance(chosen, slice) else column.take(pa.array(chosen))


def _unless(missing: npt.NDArray[np.bool_], values: npt.NDArray[Any]) -> pa.Array:
    return pa.array(values, mask=missing) if missing.any() else pa.array(values)


def operand_values(expressions: Sequence[Expression], rows: pa.Table) -> dict[Expression, pa.Array]:
    """What expressions over a row give for each row."""
    columns: dict[tuple[str | None, str], pa.Array] = {
        (None, name): one_chunk(rows.column(name)) for name in rows.column_names
    }
    return {
        each: columns[None, each.name] if isinstance(each, Attribute) else evaluate(each, columns, rows.num_rows)
        for each in expressions
    }
