"""EStream's own stream operators once more, in lists and loops: every window is looked at as a whole, every time.

Rows are dicts in their order; `ts` is the time in microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

Row = dict[str, Any]
Condition = Callable[[Row], bool]


def apart(rows: Iterable[Row], columns: Sequence[str]) -> list[list[Row]]:
    """The rows by the values of some columns; a null is a value like another."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in columns), []).append(row)
    return list(groups.values())


def partitioned(rows: Iterable[Row], columns: Sequence[str]) -> list[list[Row]]:
    """The partitions; a row with a null in its key is in none."""
    return apart([row for row in rows if all(row[name] is not None for name in columns)], columns)


# Modifiers


def change(function: str, old: Row, new: Row, name: str, over: str | None, pseudo: float) -> Any:
    if old[name] is None or new[name] is None:
        return None
    difference = new[name] - old[name]
    if function == "adiff":
        return difference
    if function == "aslope" and over is not None:
        if old[over] is None or new[over] is None:
            return None
        below = new[over] - old[over] + pseudo
    else:
        below = old[name] + pseudo
    return None if below == 0 else (difference + pseudo) / below


def modify(
    rows: Sequence[Row],
    function: str,
    attributes: Sequence[str],
    partition_by: Sequence[str] = (),
    over: str | None = None,
    pseudo: float = 0.0,
    keep: str = "old",
    window: int | None = None,
    every: int | None = None,
    until: int | None = None,
) -> list[Row]:
    """The changes between consecutive rows, or from first to last in [k * every, k * every + window)."""
    out = []
    for part in partitioned([row for row in rows if until is None or row["ts"] < until], partition_by):
        for old, new, time in _pairs(part, window, every, until):
            row = dict(new if keep == "new" else old)
            row |= {name: change(function, old, new, name, over, pseudo) for name in attributes}
            out.append(row | {"ts": time})
    return out


def _pairs(rows: list[Row], window: int | None, every: int | None, until: int | None) -> Iterable[tuple[Row, Row, int]]:
    if window is None:
        yield from ((old, new, new["ts"]) for old, new in pairwise(rows))
        return
    every = every or window
    for start in range((rows[0]["ts"] - window) // every * every, rows[-1]["ts"] + 1, every):
        inside = [row for row in rows if start <= row["ts"] < start + window]
        if len(inside) >= 2 and (until is None or start + window <= until):
            yield inside[0], inside[-1], start + window


# Aggregates


def aggregate(name: str, values: list[Any]) -> Any:
    """An aggregate over the values of a window's rows, nulls among them."""
    there = [value for value in values if value is not None]
    match name:
        case "first":
            return values[0]
        case "last":
            return values[-1]
        case "collect":
            return values
        case "count":
            return len(there)
        case "approx_count_distinct":
            return len(set(there))
    if not there:
        return None
    match name:
        case "sum":
            return math.fsum(there) if isinstance(there[0], float) else sum(there)
        case "avg":
            return math.fsum(there) / len(there)
        case "min":
            return min(there)
        case "max":
            return max(there)
        case "stddev":
            mean = math.fsum(there) / len(there)
            squares = math.fsum((value - mean) ** 2 for value in there)
            return math.sqrt(squares / (len(there) - 1)) if len(there) > 1 else None
    raise ValueError(name)


# Windows


def windows(
    rows: Sequence[Row], size: int, by: str, batch: bool, partition_by: Sequence[str], group_by: Sequence[str]
) -> Iterable[tuple[list[Row], int, int]]:
    """Every window that gives an output: its rows of one group, its start and its end."""
    for part in partitioned(rows, partition_by):
        for inside, start, end in (_batches if batch else _slides)(part, size, by):
            if batch:
                for group in apart(inside, group_by):
                    yield group, group[0]["ts"] if start is None else start, end
            else:
                newest = inside[-1]
                group = [row for row in inside if all(row[name] == newest[name] for name in group_by)]
                yield group, group[0]["ts"] if start is None else start, end


def _slides(rows: list[Row], size: int, by: str) -> Iterable[tuple[list[Row], int | None, int]]:
    for place, row in enumerate(rows):
        if by == "rows":
            yield rows[max(0, place - size + 1) : place + 1], None, row["ts"]
        else:
            start = row["ts"] - size
            yield [other for other in rows[: place + 1] if other["ts"] > start], start, row["ts"]


def _batches(rows: list[Row], size: int, by: str) -> Iterable[tuple[list[Row], int | None, int]]:
    if by == "rows":
        for place in range(0, len(rows) - size + 1, size):
            inside = rows[place : place + size]
            yield inside, None, inside[-1]["ts"]
        return
    for number in sorted({row["ts"] // size for row in rows}):
        yield [row for row in rows if row["ts"] // size == number], number * size, (number + 1) * size


# One row for each value


def first_unique(
    rows: Sequence[Row], columns: Sequence[str], partition_by: Sequence[str], size: int | None, by: str, batch: bool
) -> list[Row]:
    """The rows with no row of the same value before them, in all rows or in their window."""
    out = []
    for part in partitioned(rows, partition_by):
        for place, row in enumerate(part):
            before = part[:place]
            if size is not None:
                where = [(other, other["ts"] if by == "time" else spot) for spot, other in enumerate(before)]
                here = row["ts"] if by == "time" else place
                low = here // size * size if batch else here - size + 1
                before = [other for other, position in where if position >= low]
            if not any(all(other[name] == row[name] for name in columns) for other in before):
                out.append(row)
    return out


def last_unique(
    rows: Sequence[Row], columns: Sequence[str], partition_by: Sequence[str], size: int | None, by: str
) -> list[Row]:
    """The last row of each value: of those with one time, or of each batch."""
    if size is None:
        return [group[-1] for part in partitioned(rows, partition_by) for group in apart(part, ["ts", *columns])]
    batches = windows(rows, size, by, True, partition_by, columns)
    return [group[-1] | {"ts": end} for group, _, end in batches]
