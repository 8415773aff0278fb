"""Kernels of windows: rows are numbers, each linked to the one before and after it in its cell.

A cell is a partition, or a group inside one. Its window is the rows from `low` to the newest. Aggregates that cannot
be taken back (real sums, extremes, spreads) use two stacks (Tangwongsan et al., "General incremental sliding-window
aggregation"): the rows from `low` to `middle` have the aggregate of themselves and all up to `middle` beside them,
those from `middle` on are summed up in `back`. When `low` passes `middle`, all rows but the newest move in front. So
every row is touched a few times whatever the window's length, nothing is ever subtracted, and the order in which
numbers are added follows from the cell's rows alone: not from batches, restarts or other cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from estream.event.compiled import compiled

Words = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
NONE = -1
at = np.uint64
"""Marks a place as not negative: numba then leaves out the test for places that count from the end."""


@compiled
def follow(first: int, cells: Words, lower: Words, rows: tuple[Words, ...], state: tuple[Words, ...], out: Any) -> None:
    """Take rows into the windows of their cells and drop what lies below `lower`.

    `rows` are the arrays (position, following, before), `state` of cells (front, last, middle, size), `out` for each
    new row (low, middle, size) when it is the newest.
    """
    position, following, before = rows
    front, last, middle, size = state
    lows, middles, sizes = out
    for entry in range(len(cells)):
        row, cell, bound = first + entry, at(cells[entry]), lower[entry]
        previous = last[cell]
        before[at(row)], following[at(row)] = previous, NONE
        low, half, count = row, row, 1
        if previous != NONE:
            following[at(previous)] = row
            low, half, count = front[cell], middle[cell], size[cell] + 1
            while position[at(low)] < bound:
                low = following[at(low)]
                count -= 1
            if low > half:
                half = row
        front[cell], last[cell], middle[cell], size[cell] = low, row, half, count
        lows[entry], middles[entry], sizes[entry] = low, half, count


@compiled
def follow_time(
    first: int, cells: Words, lower: Words, rows: tuple[Words, ...], state: tuple[Words, ...], out: Any, oldest: int
) -> int:
    """As `follow`, where `lower` never goes back: then rows leave their windows in the order they came.

    `rows` are the arrays (position, following, before, cell). Rows from `oldest` on are still in their windows; gives
    where they begin after the last row.
    """
    position, following, before, cell_of = rows
    front, last, middle, size = state
    lows, middles, sizes = out
    for entry in range(len(cells)):
        row, cell, bound = first + entry, at(cells[entry]), lower[entry]
        while position[at(oldest)] < bound:
            left = at(cell_of[at(oldest)])
            front[left] = following[at(oldest)]
            size[left] -= 1
            oldest += 1
        previous, low = last[cell], front[cell]
        before[at(row)], following[at(row)] = previous, NONE
        half, count = middle[cell], size[cell] + 1
        if previous != NONE:
            following[at(previous)] = row
        if low == NONE:
            low = row
            front[cell] = row
        if low > half:
            half = row
        last[cell], middle[cell], size[cell] = row, half, count
        lows[entry], middles[entry], sizes[entry] = low, half, count
    return oldest


@compiled
def sum_words(first: int, cells: Words, lows: Words, values: Words, start: Words, total: Words, out: Words) -> None:
    """Sums of words, which wrap and can be taken back: `start` is a row's total without the row itself."""
    for entry in range(len(cells)):
        cell = at(cells[entry])
        start[at(first + entry)] = total[cell]
        total[cell] += values[entry]
        out[entry] = total[cell] - start[at(lows[entry])]


@compiled
def sum_reals(first: int, cells: Words, bounds: Any, before: Words, values: Reals, front: Reals, back: Reals) -> Reals:
    """Sums of doubles over the windows, by two stacks.

    What moves in front is summed up first, for all new rows: the loop that is left has nothing to guess.
    """
    lows, middles = bounds
    for entry in moved(first, middles):
        total, low, other = 0.0, lows[entry], before[at(first + entry)]
        while other >= low:
            total += values[at(other)]
            front[at(other)] = total
            other = before[at(other)]
    out = np.empty(len(cells))
    for entry in range(len(cells)):
        row, cell, low = first + entry, at(cells[entry]), lows[entry]
        older, newer = front[at(low)], back[cell]
        newest = values[at(row)] + (0.0 if middles[entry] == row else newer)
        back[cell] = newest
        out[entry] = newest + (older if low < middles[entry] else 0.0)
    return out


@compiled
def moved(first: int, middles: Words) -> Words:
    """The new rows at which all older rows of a window move in front."""
    out, found = np.empty(len(middles), dtype=np.int64), 0
    for entry in range(len(middles)):
        out[found] = entry
        found += middles[entry] == first + entry
    return out[:found]


@compiled
def merged(
    count: float, mean: float, squares: float, other_count: float, other_mean: float, other_squares: float
) -> tuple[float, float, float]:
    """Count, mean and sum of squared distances from it, of two sets together (Chan et al.)."""
    both = count + other_count
    if count == 0.0:
        return other_count, other_mean, other_squares
    if other_count == 0.0:
        return count, mean, squares
    apart = other_mean - mean
    return (
        both,
        mean + apart * (other_count / both),
        squares + other_squares + apart * apart * count * (other_count / both),
    )


@compiled
def spread(first: int, cells: Words, bounds: Any, before: Words, values: Any, front: Any, back: Any) -> Any:
    """Count and sum of squared distances from the mean over the windows, by two stacks.

    `values` are (weight, value) of rows, weight 0 for null; `front` and `back` are (count, mean, squares).
    """
    lows, middles = bounds
    weight, value = values
    counts, means, squares = front
    back_counts, back_means, back_squares = back
    out = np.empty((2, len(cells)))
    for entry in range(len(cells)):
        row, cell, low = first + entry, cells[entry], lows[entry]
        if middles[entry] == row:
            n, mean, square = 0.0, 0.0, 0.0
            other = before[row]
            while other >= low:
                n, mean, square = merged(n, mean, square, weight[other], value[other], 0.0)
                counts[other], means[other], squares[other] = n, mean, square
                other = before[other]
            back_counts[cell], back_means[cell], back_squares[cell] = 0.0, 0.0, 0.0
        n, mean, square = merged(back_counts[cell], back_means[cell], back_squares[cell], weight[row], value[row], 0.0)
        back_counts[cell], back_means[cell], back_squares[cell] = n, mean, square
        if low < middles[entry]:
            n, mean, square = merged(counts[low], means[low], squares[low], n, mean, square)
        out[0, entry], out[1, entry] = n, square
    return out


@compiled
def higher(one: int, other: int, rank: Words, valid: Words) -> int:
    """The row of the greater rank; a row that is null, or none, is below all."""
    if other == NONE or valid[other] == 0:
        return one
    if one == NONE or valid[one] == 0 or rank[other] > rank[one]:
        return other
    return one


@compiled
def highest(first: int, cells: Words, bounds: Any, before: Words, values: Any, front: Words, back: Words) -> Words:
    """The rows of the greatest rank over the windows, by two stacks; `values` are (rank, whether it is not null)."""
    lows, middles = bounds
    rank, valid = values
    out = np.empty(len(cells), dtype=np.int64)
    for entry in range(len(cells)):
        row, cell, low = first + entry, cells[entry], lows[entry]
        if middles[entry] == row:
            best, other = NONE, before[row]
            while other >= low:
                best = higher(best, other, rank, valid)
                front[other] = best
                other = before[other]
            back[cell] = NONE
        back[cell] = higher(back[cell], row, rank, valid)
        out[entry] = higher(front[low], back[cell], rank, valid) if low < middles[entry] else back[cell]
    return out


@compiled
def count_distinct(
    first: int, cells: Words, lows: Words, following: Words, pairs: Words, counts: Words, state: Any
) -> Words:
    """How many values the windows hold. `pairs` numbers (cell, value) of rows, `NONE` for null; `state` of cells is
    (the first row still counted, how many values are)."""
    left, distinct = state
    out = np.empty(len(cells), dtype=np.int64)
    for entry in range(len(cells)):
        row, cell = first + entry, cells[entry]
        if left[cell] == NONE:
            left[cell], distinct[cell] = row, 0
        while left[cell] != lows[entry]:
            pair = pairs[left[cell]]
            if pair != NONE:
                counts[pair] -= 1
                distinct[cell] -= counts[pair] == 0
            left[cell] = following[left[cell]]
        pair = pairs[row]
        if pair != NONE:
            distinct[cell] += counts[pair] == 0
            counts[pair] += 1
        out[entry] = distinct[cell]
    return out


@compiled
def members(lows: Words, sizes: Words, following: Words) -> Words:
    """The rows of several windows, one window after the other."""
    out = np.empty(sizes.sum(), dtype=np.int64)
    at = 0
    for entry in range(len(lows)):
        row = lows[entry]
        for _ in range(sizes[entry]):
            out[at] = row
            row = following[row]
            at += 1
    return out


@compiled
def still_needed(
    cell_of: Words, position: Words, horizon: Words, live: Any, state: tuple[Words, ...], following: Words
) -> None:
    """Mark the rows that may still be in a window: those of a cell from its low on that are not below its horizon.

    `state` of cells is (front, last, size); it moves to the first row that is marked.
    """
    front, last, size = state
    for cell in range(len(horizon)):
        while front[cell] != NONE and position[front[cell]] < horizon[cell]:
            front[cell] = following[front[cell]]
            size[cell] -= 1
        if front[cell] == NONE:
            last[cell] = NONE
    for row in range(len(live)):
        low = front[cell_of[row]]
        live[row] = low != NONE and row >= low


@compiled
def ordinals(partitions: Words, counts: Words, out: Words) -> None:
    """The ordinal of each row in its partition; `counts` goes on from earlier rows."""
    for entry in range(len(partitions)):
        out[entry] = counts[partitions[entry]]
        counts[partitions[entry]] += 1


@compiled
def before_in_cell(cells: Words, values: Words, latest: Words, out: Words) -> None:
    """For each entry the value of the entry before it in its cell; `latest` goes on from earlier ones."""
    for entry in range(len(cells)):
        cell = cells[entry]
        out[entry] = latest[cell]
        latest[cell] = values[entry]


@compiled
def last_of_each(cells: Words, values: Words, following: Words, out: Any) -> None:
    """Which entries are the last with their cell and value; values of a cell never go back. `following` is scratch."""
    for entry in range(len(cells) - 1, -1, -1):
        cell = cells[entry]
        out[entry] = following[cell] != values[entry]
        following[cell] = values[entry]
