"""What the functions of masks read: the rows they are asked of, attributes."""

from __future__ import annotations

from estream.event.compiled import compiled
from estream.event.memory import peek, peek_double
from estream.event.words import ASKED, FLOATS, INTEGERS, NULLS, ROW_EVENT, STRIDE, USED


@compiled
def rows_asked(m: int) -> int:
    """How many constituents the mask is asked of."""
    return peek(m, ASKED + USED)


@compiled
def row_at(m: int, position: int, event: int) -> int:
    """The row of a constituent if it is of this event, else -1."""
    row = peek(peek(m, ASKED), position)
    return row if peek(peek(m, ROW_EVENT), row) == event else -1


@compiled
def last_row(m: int, event: int) -> int:
    """The last constituent of an event, or -1."""
    for position in range(rows_asked(m) - 1, -1, -1):
        row = row_at(m, position, event)
        if row >= 0:
            return row
    return -1


@compiled
def is_null(m: int, place: int, row: int) -> bool:
    """Whether the attribute is null; it is where there is no row."""
    return row < 0 or peek(peek(m, NULLS), place * peek(m, STRIDE) + row) != 0


@compiled
def integer(m: int, place: int, row: int) -> int:
    """An attribute as a word: an integer, a time, or the code of a text."""
    return 0 if row < 0 else peek(peek(m, INTEGERS), place * peek(m, STRIDE) + row)


@compiled
def double(m: int, place: int, row: int) -> float:
    """An attribute as a double."""
    return 0.0 if row < 0 else peek_double(peek(m, FLOATS), place * peek(m, STRIDE) + row)
