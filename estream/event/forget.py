"""Forget keys and texts that nothing refers to, so that keys that fall silent cost nothing."""

from __future__ import annotations

import numpy as np

from estream.event.columns import Texts
from estream.event.graph import Graph
from estream.event.rows import key_kinds
from estream.event.state import Partitions, State
from estream.event.words import NONE

LEAST = 1 << 12
"""So many partitions, or texts, are not worth the work."""


def forget_keys(partitions: Partitions) -> None:
    """Number the partitions in which something waits anew, if they are less than half of all.

    Where temporal events belong to a group, a partition in which nothing waits is not like one that never was.
    """
    count = partitions.keys.count
    if count < LEAST or not partitions.group.is_keyed or partitions.group.temporals:
        return
    live = np.flatnonzero((partitions.lists[:count, :, 0] != NONE).any(axis=1))
    if 2 * len(live) < count:
        partitions.keep(live)


def forget_texts(graph: Graph, state: State) -> None:
    """Give the texts that keys and kept rows have new codes, if they are less than half of all."""
    texts = state.texts
    if len(texts.values) < LEAST:
        return
    used = np.zeros(len(texts.values), dtype=np.bool_)
    used[: state.constants] = True
    columns = [(one, position) for one in state.partitions for position in _text_positions(graph, one)]
    for partitions, position in columns:
        table = partitions.keys.tables[position]
        used[table.values[: table.used]] = True
    for place in state.rows.text_places:
        used[state.rows.masked_words(place)] = True
    if 2 * int(used.sum()) >= len(used):
        return
    codes = np.cumsum(used) - 1
    state.texts = state.rows.texts = Texts([texts.values[code] for code in np.flatnonzero(used)])
    for partitions, position in columns:
        partitions.keys.tables[position].replace(codes)
        partitions.touched[:] = 1
    for place in state.rows.text_places:
        state.rows.masked_words(place)[:] = codes[state.rows.masked_words(place)]
    state.ledger.texts_moved()


def _text_positions(graph: Graph, partitions: Partitions) -> list[int]:
    return [position for position, kind in enumerate(key_kinds(graph, partitions.group)) if "text" in kind]
