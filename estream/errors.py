"""Problems with their place: what every stage reports and every front end prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A stretch of one line of a file; lines and columns count from 1."""

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what was found, what would be right."""

    place: Place
    message: str
    severity: Severity = "error"
    hint: str | None = None

    def __str__(self) -> str:
        kind = "warning: " if self.severity == "warning" else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.place}: {kind}{self.message}{hint}"


class EStreamError(Exception):
    """Raised to a user: says every problem, never needs a traceback."""

    def __init__(self, problems: Iterable[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = () if isinstance(problems, str) else tuple(problems)
        super().__init__(problems if isinstance(problems, str) else "\n".join(map(str, self.problems)))
