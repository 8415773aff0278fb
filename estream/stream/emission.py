"""Between a branch's columns and the event generator that reads them: which columns make which events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from estream.plan.model import Leaf
from estream.stream.feed import Feed

TIME, REFUSED = "t", "refused"
"""Columns of a stream's branch: the time of the source row; of one that is refused why, where it was and what it is."""


@dataclass(frozen=True, slots=True)
class Emission:
    """Which columns of a branch make the occurrences of an event."""

    leaf: Leaf
    mask: str
    columns: Mapping[str, str]
    """Attribute to column."""


@dataclass(frozen=True, slots=True)
class Publication:
    """Which columns of a branch are the rows of a query that is published."""

    query: str
    mask: str
    columns: Mapping[str, str]
    """Column of the query to column of the branch."""


@dataclass(frozen=True, slots=True)
class Fed:
    """Which columns of a branch are the rows that a feed takes."""

    feed: Feed
    mask: str
    columns: Mapping[str, str]
    """Column of the source to column of the branch."""
