"""The contract's order of detections: by end, event, start, and then the ids of the constituents one after another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Words = npt.NDArray[np.int64]


def order_of(detections: pa.Table) -> Words:
    """The places of the detections in order. Ids are looked at only where all else is equal."""
    columns = [_numbers(detections, "end"), _ranks(detections), _numbers(detections, "start")]
    order: Words = np.lexsort(columns[::-1])
    same = np.logical_and.reduce([column[order[1:]] == column[order[:-1]] for column in columns])
    if same.any():
        _settle(order, np.concatenate([[False], same]), detections)
    return order


def _numbers(detections: pa.Table, name: str) -> Words:
    return np.asarray(detections.column(name).to_numpy(), dtype=np.int64)


def _ranks(detections: pa.Table) -> Words:
    """Events as numbers that are in the order of their names."""
    encoded = detections.column("event").combine_chunks().dictionary_encode()
    ranks = np.empty(len(encoded.dictionary), dtype=np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    return np.asarray(ranks[encoded.indices.to_numpy()], dtype=np.int64)


def _settle(order: Words, same: npt.NDArray[np.bool_], detections: pa.Table) -> None:
    """Put runs of equals in order by their ids, in place; `same` says which are equal to the one in front of them."""
    groups: Words = np.cumsum(~same, dtype=np.int64)
    tied = np.flatnonzero(same | np.append(same[1:], False))
    members = detections.column("constituents").take(pa.array(order[tied])).combine_chunks()
    ids = np.asarray(members.flatten().field("id").to_numpy(), dtype=np.int64)
    lengths = np.asarray(members.value_lengths().to_numpy(), dtype=np.int64)
    order[tied] = order[tied][_by_ids(groups[tied], ids, np.cumsum(lengths) - lengths, lengths)]


def _by_ids(groups: Words, ids: Words, firsts: Words, lengths: Words) -> Words:
    """The order inside each group by lists of ids: by the first ids, of those with equal ones by the second, ..."""
    order, ids = np.arange(len(groups)), np.append(ids, 0)
    tied, position = order.copy(), 0
    while len(tied):
        rows = order[tied]
        goes_on = lengths[rows] > position
        here = ids[np.where(goes_on, firsts[rows] + position, len(ids) - 1)]
        sort = np.lexsort((here, goes_on, groups[tied]))
        keys = (groups[tied], goes_on[sort], here[sort])
        order[tied] = rows[sort]
        begins = np.append(True, np.logical_or.reduce([key[1:] != key[:-1] for key in keys]))
        groups[tied] = np.cumsum(begins)
        tied = tied[~(begins & np.append(begins[1:], True)) & goes_on[sort]]
        position += 1
    return order
