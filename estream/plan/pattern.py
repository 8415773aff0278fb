"""Pattern events in the plan: the rows they match are a leaf event, and their matches are another."""

from __future__ import annotations

from estream.plan.model import Column, Leaf, Pattern
from estream.spec.checked import Columns
from estream.spec.expression import Attribute, walk
from estream.spec.model import PatternEvent
from estream.spec.types import spelling


def rows_event(pattern: str) -> str:
    """The name of the event whose occurrences are the rows a pattern event matches: none that a user can give."""
    return f"{pattern} rows"


def partition_of(spec: PatternEvent, columns: Columns) -> tuple[str, ...]:
    """The attributes that partition the rows, as the query spells them."""
    return tuple(spelling(name, columns) or str(name) for name in spec.partition_by)


def needed_columns(pattern: Pattern) -> tuple[str, ...]:
    """The columns of the query that predicates, keys and output ask for."""
    asked = {*pattern.partition}
    for _, expression in (*pattern.define, *pattern.output):
        asked |= {part.name for part in walk(expression) if isinstance(part, Attribute)}
    return tuple(column.name for column in pattern.columns if column.name in asked)


def rows_leaf(pattern: Pattern) -> Leaf:
    """The leaf of the rows that are matched."""
    needed = needed_columns(pattern)
    return Leaf(rows_event(pattern.name), pattern.query, None, None, pattern.id, pattern.time, pattern.columns, needed)


def matches_leaf(pattern: Pattern, asked: set[str]) -> Leaf:
    """The leaf of the matches, which have the output's attributes; `asked` are those that travel."""
    columns = tuple(Column(name, expression.type) for name, expression in pattern.output)
    needed = tuple(column.name for column in columns if column.name in asked)
    return Leaf(pattern.name, pattern.name, None, None, (), "", columns, needed, matched=True)
