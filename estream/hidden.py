"""Numbers of a file that came from variables, whose values are nobody's to see."""

from __future__ import annotations

from typing import Self


class HiddenNumber(int):
    """A whole number that came from a variable: it counts like any other, and is shown as the variable."""

    shown: str

    def __new__(cls, value: int, shown: str = "") -> Self:
        """`shown` is what stands for the number wherever people or programs read it."""
        made = super().__new__(cls, value)
        made.shown = shown
        return made


def shown_number(number: int) -> int | str:
    """What may be shown of a number."""
    return number.shown if isinstance(number, HiddenNumber) else number
