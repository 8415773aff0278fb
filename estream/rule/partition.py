"""The partition of a detection as text, `card=7, shop=3`: what throttles count by and people search for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from estream.rule.detection import Detected
from estream.rule.layout import Layout, constituents_of, detected, texts_of

_ODD: Final = re.compile(r'[,="\\\x00-\x1f]|^\s|\s$|^(null)?$')
Keys = Mapping[str, tuple[str, ...]]
"""Leaf event to the attributes that make the partition."""


def partition_of(keys: Keys, one: Detected) -> str:
    """The partition of a detection, by its last constituent that has a key; empty if there is none."""
    for part in reversed(one.constituents):
        key = keys.get(part.event)
        if key:
            return _shown(key, [part.attributes.get(name) for name in key])
    return ""


def partitions_of(layout: Layout, keys: Keys, table: pa.Table) -> list[str]:
    """The partition of each detection of a table, column by column."""
    found = [""] * table.num_rows
    if not keys or not table.num_rows:
        return found
    members, bounds = constituents_of(table)
    last = np.asarray(bounds[1:] - 1)
    has = bounds[1:] > bounds[:-1]
    events = np.array(texts_of(members.field("event").take(pa.array(np.where(has, last, 0)))), dtype=object)
    for leaf in dict.fromkeys(events):
        rows = np.flatnonzero((events == leaf) & has)
        if leaf in keys:
            columns = [_column(layout, members, leaf, name, last[rows]) for name in keys[leaf]]
            for row, values in zip(rows.tolist(), zip(*columns, strict=True), strict=True):
                found[row] = _shown(keys[leaf], values)
        else:
            for row, one in zip(rows.tolist(), detected(layout, table.take(pa.array(rows))), strict=True):
                found[row] = partition_of(keys, one)
    return found


def _column(layout: Layout, members: Any, leaf: str, name: str, places: Any) -> list[Any]:
    field = next(one.field for one in layout.leaves[leaf] if one.name.lower() == name.lower())
    values: list[Any] = members.field(field).take(pa.array(places)).to_pylist()
    return values


def _shown(key: tuple[str, ...], values: Any) -> str:
    return ", ".join([f"{name}={_word(value)}" for name, value in zip(key, values, strict=True)])


def _word(value: Any) -> str:
    """A value as text; one that could be taken for another, or for more than one, is quoted."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if _ODD.search(value) else value
    return "null" if value is None else str(value)
