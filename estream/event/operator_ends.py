"""Kernels of windowed modifiers: the first and the last row of every window of a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from estream.event.compiled import compiled

Words = npt.NDArray[np.int64]
NONE = -1


@compiled
def link(first: int, cells: Words, following: Words, front: Words, last: Words) -> None:
    """Put new rows behind the others of their cells."""
    for entry in range(len(cells)):
        row, cell = first + entry, cells[entry]
        following[row] = NONE
        if last[cell] != NONE:
            following[last[cell]] = row
        if front[cell] == NONE:
            front[cell] = row
        last[cell] = row


@compiled
def ends_of_windows(spec: tuple[int, int, int, int], time: Words, following: Words, state: Any, out: Any) -> int:
    """First and last row of every window [k * every, k * every + length) that ends in (since, until].

    `spec` is (length, every, since, until); `state` of cells is (front, the last row of the latest window, how many
    cells there are), and moves. `out` are (first, last, end) of windows with two rows or more; gives how many there
    are. Without room for them it counts only, and nothing moves.
    """
    length, every, since, until = spec
    front, reached, cells = state
    firsts, lasts, ends, counting = out
    found = 0
    for cell in range(cells):
        low, high = front[cell], reached[cell]
        if low == NONE:
            continue
        number = max((since - length) // every, (time[low] - length) // every) + 1
        while number * every + length <= until:
            while low != NONE and time[low] < number * every:
                low = following[low]
            if low == NONE:
                break
            end = number * every + length
            if time[low] >= end:
                number = (time[low] - length) // every + 1
                continue
            high = max(high, low)
            while following[high] != NONE and time[following[high]] < end:
                high = following[high]
            if high != low:
                if not counting:
                    firsts[found], lasts[found], ends[found] = low, high, end
                found += 1
            number += 1
        if not counting:
            front[cell], reached[cell] = low, high
    return found
