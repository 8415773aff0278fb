"""What windows are summed up by: each part goes over the new rows once, whatever the length of their windows.

An aggregate of the language is made of parts (`avg` of a real sum and a count), and equal parts are shared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from estream.event import operator_kernel as kernel
from estream.event.columns import Texts, floats_of, nulls_of, words_of
from estream.event.operator_store import Arrays, Kept, KeyNumbers, Words, place_map
from estream.spec.expression import Expression

PartKind: TypeAlias = Literal["count", "whole", "real", "spread", "least", "most", "distinct"]


@dataclass(frozen=True, slots=True)
class Part:
    """One fold over one operand; `slot` names its arrays."""

    slot: str
    kind: PartKind
    operand: Expression

    @property
    def ranks_text(self) -> bool:
        """Whether values are ordered by their ranks in a dictionary of texts."""
        return self.kind in ("least", "most") and self.operand.type.name == "string"


@dataclass(frozen=True, slots=True)
class Span:
    """The new rows of a step, and the windows they are the newest of: from `lows` on, `sizes` rows."""

    first: int
    cells: Words
    lows: Words
    middles: Words
    sizes: Words
    rows: Arrays
    state: Arrays
    """Arrays of cells."""

    def array(self, part: Part, name: str) -> npt.NDArray[Any]:
        """An array of rows that belongs to the part."""
        return self.rows[f"{part.slot}.{name}"]

    def cell(self, part: Part, name: str) -> npt.NDArray[Any]:
        """An array of cells that belongs to the part."""
        return self.state[f"{part.slot}.{name}"]

    def put(self, part: Part, name: str, values: Any) -> npt.NDArray[Any]:
        """Set the new rows' entries of the part's array, and give the whole of it."""
        array = self.array(part, name)
        array[self.first : self.first + len(self.cells)] = values
        return array


@dataclass(frozen=True, slots=True)
class Layout:
    """The arrays a kind of part needs."""

    row_words: tuple[str, ...] = ()
    row_doubles: tuple[str, ...] = ()
    cell_words: tuple[str, ...] = ()
    cell_doubles: tuple[str, ...] = ()


_SUM = Layout(row_words=("start",), cell_words=("total",))
_EXTREME = Layout(row_words=("rank", "valid", "front", "code"), cell_words=("back",))
_THREE = ("count", "mean", "square")
LAYOUTS: dict[PartKind, Layout] = {
    "count": _SUM,
    "whole": _SUM,
    "real": Layout(row_doubles=("value", "front"), cell_doubles=("back",)),
    "spread": Layout(row_doubles=("weight", "value", *_THREE), cell_doubles=_THREE),
    "least": _EXTREME,
    "most": _EXTREME,
    "distinct": Layout(row_words=("pair",), cell_words=("left", "distinct")),
}


def begin_part(kept: Kept, part: Part, value: pa.DataType) -> None:
    """Make room for what a part keeps beside its arrays of rows and cells."""
    if part.ranks_text:
        kept.keys[part.slot] = KeyNumbers(pa.schema([("value", value)]))
    if part.kind == "distinct":
        kept.keys[part.slot] = KeyNumbers(pa.schema([("cell", pa.int64()), ("value", value)]))
        kept.arrays[part.slot] = Arrays(counters=("count",))


def fold(kept: Kept, part: Part, span: Span, column: pa.Array) -> npt.NDArray[Any]:
    """The part over the window of each new row; `column` are the operand's values of the new rows."""
    return _FOLDS[part.kind](kept, part, span, column)


def _count(kept: Kept, part: Part, span: Span, column: pa.Array) -> Words:
    nulls = nulls_of(column)
    return _sum(part, span, np.ones(len(column), dtype=np.int64) if nulls is None else (~nulls).astype(np.int64))


def _whole(kept: Kept, part: Part, span: Span, column: pa.Array) -> Words:
    return _sum(part, span, words_of(column, Texts()))


def _sum(part: Part, span: Span, values: Words) -> Words:
    out = np.empty(len(values), dtype=np.int64)
    start, total = span.array(part, "start"), span.cell(part, "total")
    kernel.sum_words(span.first, span.cells, span.lows, values, start, total, out)
    return out


def _real(kept: Kept, part: Part, span: Span, column: pa.Array) -> npt.NDArray[np.float64]:
    values = span.put(part, "value", _reals(column))
    bounds = (span.lows, span.middles)
    front, back = span.array(part, "front"), span.cell(part, "back")
    return kernel.sum_reals(span.first, span.cells, bounds, span.rows["before"], values, front, back)


def _reals(column: pa.Array) -> npt.NDArray[np.float64]:
    """The values with 0 for null, which adds nothing."""
    values, nulls = floats_of(column), nulls_of(column)
    return values if nulls is None else np.where(nulls, 0.0, values)


def _spread(kept: Kept, part: Part, span: Span, column: pa.Array) -> npt.NDArray[Any]:
    nulls = nulls_of(column)
    values = (
        span.put(part, "weight", 1.0 if nulls is None else ~nulls),
        span.put(part, "value", _reals(column)),
    )
    front = tuple(span.array(part, name) for name in _THREE)
    back = tuple(span.cell(part, name) for name in _THREE)
    bounds = (span.lows, span.middles)
    out: npt.NDArray[Any] = kernel.spread(span.first, span.cells, bounds, span.rows["before"], values, front, back)
    return out


def _extreme(kept: Kept, part: Part, span: Span, column: pa.Array) -> Words:
    """The rows of the extremes, `NONE` where all are null."""
    nulls = nulls_of(column)
    values = (_ranks(kept, part, span, column), span.put(part, "valid", 1 if nulls is None else ~nulls))
    front, back = span.array(part, "front"), span.cell(part, "back")
    bounds = (span.lows, span.middles)
    return kernel.highest(span.first, span.cells, bounds, span.rows["before"], values, front, back)


def _ranks(kept: Kept, part: Part, span: Span, column: pa.Array) -> Words:
    """Words in the order of the values; those of `least` in the opposite one."""
    turn = -1 if part.kind == "least" else 0
    if not part.ranks_text:
        return span.put(part, "rank", turn ^ _ordered_words(column))
    texts = kept.keys[part.slot]
    known = texts.count
    codes = span.put(part, "code", texts.numbers(pa.table({"value": column})))
    if texts.count == known:
        ranks = _text_ranks(texts)
        return span.put(part, "rank", turn ^ ranks[codes[span.first : span.first + len(column)]])
    rank = span.array(part, "rank")
    used = span.first + len(column)
    rank[:used] = turn ^ _text_ranks(texts)[codes[:used]]
    return rank


def _text_ranks(texts: KeyNumbers) -> Words:
    order = pc.sort_indices(texts.values.column("value")).to_numpy()
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _ordered_words(column: pa.Array) -> Words:
    """Words that compare as the values do; of doubles NaN is the greatest."""
    words = words_of(column, Texts())
    return words ^ ((words >> 63) & np.int64(2**63 - 1)) if pa.types.is_floating(column.type) else words


def _distinct(kept: Kept, part: Part, span: Span, column: pa.Array) -> Words:
    pairs, nulls = kept.keys[part.slot], nulls_of(column)
    numbers = pairs.numbers(pa.table({"cell": pa.array(span.cells), "value": column}))
    counts = kept.arrays[part.slot]
    counts.extend(pairs.count)
    entries = span.put(part, "pair", numbers if nulls is None else np.where(nulls, kernel.NONE, numbers))
    state = (span.cell(part, "left"), span.cell(part, "distinct"))
    following = span.rows["following"]
    return kernel.count_distinct(span.first, span.cells, span.lows, following, entries, counts["count"], state)


_FOLDS: dict[PartKind, Callable[[Kept, Part, Span, pa.Array], npt.NDArray[Any]]] = {
    "count": _count,
    "whole": _whole,
    "real": _real,
    "spread": _spread,
    "least": _extreme,
    "most": _extreme,
    "distinct": _distinct,
}


def sweep_part(kept: Kept, part: Part, row_map: Words, cell_map: Words) -> None:
    """Follow rows and cells to their new places, after `kept.arrays` were swept."""
    rows, cells = kept.arrays["rows"], kept.arrays["cells"]
    if part.kind in ("least", "most"):
        for array in (rows.used(f"{part.slot}.front"), cells.used(f"{part.slot}.back")):
            array[:] = row_map[array]
    if part.ranks_text:
        codes = rows.used(f"{part.slot}.code")
        codes[:] = _kept_numbers(kept.keys[part.slot], codes)
    if part.kind == "distinct":
        _sweep_distinct(kept, part, cell_map)


def _kept_numbers(keys: KeyNumbers, used: Words) -> Words:
    """Forget the keys that are not used, and give the new numbers of those that are."""
    places = np.unique(used[used != kernel.NONE])
    numbers = place_map(places, keys.count)
    keys.keep(places)
    return numbers[used]


def _sweep_distinct(kept: Kept, part: Part, cell_map: Words) -> None:
    """Count anew what the rows that are left hold."""
    pairs, rows, cells = kept.keys[part.slot], kept.arrays["rows"], kept.arrays["cells"]
    entries = rows.used(f"{part.slot}.pair")
    entries[:] = _kept_numbers(pairs, entries)
    owners = cell_map[pairs.values.column("cell").to_numpy()]
    pairs.fill(pa.table({"cell": pa.array(owners), "value": pairs.values.column("value")}))
    counts = kept.arrays[part.slot]
    counts.keep(np.empty(0, dtype=np.int64))
    counts.extend(pairs.count)
    counts["count"][: pairs.count] = np.bincount(entries[entries != kernel.NONE], minlength=pairs.count)
    cells.used(f"{part.slot}.left")[:] = cells.used("front")
    cells.used(f"{part.slot}.distinct")[:] = np.bincount(owners, minlength=cells.length)
