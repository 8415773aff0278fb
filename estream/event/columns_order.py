"""Order of occurrences: by time, and among those of one time by what the caller gives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from estream.event.compiled import compiled

Words = npt.NDArray[np.int64]
ASCENDING, TIED, UNSORTED = 0, 1, 2


@compiled
def order_of(times: Words) -> int:
    """ASCENDING if no two are equal, TIED if some are, UNSORTED else."""
    order = ASCENDING
    for position in range(1, len(times)):
        if times[position] <= times[position - 1]:
            if times[position] < times[position - 1]:
                return UNSORTED
            order = TIED
    return order


@compiled
def before(one: int, other: int, first: Words, second: Words, third: Words) -> bool:
    """The order by three columns."""
    if first[one] != first[other]:
        return bool(first[one] < first[other])
    if second[one] != second[other]:
        return bool(second[one] < second[other])
    return bool(third[one] < third[other])


@compiled
def sort_ties(places: Words, times: Words, first: Words, second: Words, third: Words) -> None:
    """Sort each run of equal times in `places` by three columns, in place (Shell's sort: runs are short)."""
    begin = 0
    while begin < len(places):
        end = begin + 1
        while end < len(places) and times[places[end]] == times[places[begin]]:
            end += 1
        gap = (end - begin) // 2
        while gap > 0:
            for position in range(begin + gap, end):
                place, hole = places[position], position
                while hole - gap >= begin and before(place, places[hole - gap], first, second, third):
                    places[hole] = places[hole - gap]
                    hole -= gap
                places[hole] = place
            gap //= 2
        begin = end


@compiled
def repeated(places: Words, times: Words, first: Words, second: Words) -> npt.NDArray[np.bool_]:
    """Which places hold the same (time, first, second) as the one in front of them."""
    same = np.zeros(len(places), dtype=np.bool_)
    for position in range(1, len(places)):
        one, other = places[position], places[position - 1]
        same[position] = times[one] == times[other] and first[one] == first[other] and second[one] == second[other]
    return same


def sorted_places(times: Words, first: Words, second: Words, third: Words) -> Words | None:
    """The places in order of (time, first, second, third), or None if they are in strictly ascending time."""
    order = order_of(times)
    if order == ASCENDING:
        return None
    places = np.arange(len(times)) if order == TIED else np.argsort(times, kind="stable")
    sort_ties(places, times, first, second, third)
    return places
