"""Strings of a file that know where they stand and never show what the environment put into them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from estream.errors import Place, Problem, Severity

_QUOTED = re.compile(r"""(['"`])(.+?)\1""")
NOTHING = frozenset(("", "~", "null", "Null", "NULL"))
"""What YAML's core schema reads as null."""

_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a YAML node begins, and how offsets in its value map to the file.

    `lines` holds, for each line of the value, the (line, column) in the file at which it begins; empty when the
    mapping is not known (folded text, escapes, expanded variables): then every offset is the beginning.
    """

    place: Place
    lines: tuple[tuple[int, int], ...] = ()


class Text(str):
    """A scalar of a CEQ file: its value, its place, and what may be shown of it."""

    mark: Mark
    shown: str
    hidden: tuple[tuple[str, str], ...]
    plain: bool

    def __new__(
        cls,
        value: str,
        mark: Mark | None = None,
        shown: str | None = None,
        hidden: tuple[tuple[str, str], ...] = (),
        plain: bool = False,
    ) -> Self:
        """`shown` is the text as written; `hidden` are pairs (secret value, `${NAME}`) that were expanded in it.

        `plain` text was written without quotes: it may stand for a number, a boolean or nothing.
        """
        text = super().__new__(cls, value)
        text.mark = mark or Mark(Place("<text>", 1, 1, max(len(value), 1)), ((1, 1),) if "\n" not in value else ())
        text.shown = str(value) if shown is None else shown
        text.hidden = hidden
        text.plain = plain
        return text

    def __repr__(self) -> str:
        return repr(self.shown)

    @property
    def is_nothing(self) -> bool:
        """True where YAML reads the scalar as null; an empty variable is empty text."""
        return self.plain and not self.hidden and self in NOTHING

    @property
    def place(self) -> Place:
        """Where the scalar begins."""
        return self.mark.place

    def place_at(self, offset: int, length: int = 1) -> Place:
        """The place in the file of a character of the value."""
        if self.hidden or not self.mark.lines:
            return self.place
        row = self.count("\n", 0, offset)
        column = min(offset, len(self)) - (self.rfind("\n", 0, offset) + 1)
        if row >= len(self.mark.lines):
            return self.place
        line, first = self.mark.lines[row]
        return Place(self.place.file, line, first + column, max(length, 1))

    @property
    def brief(self) -> str:
        """What may be shown of it in a message: in quotes, and not all of what is very long."""
        return repr(self.shown if len(self.shown) <= _LONGEST_SHOWN else f"{self.shown[:_LONGEST_SHOWN]}...")

    def problem(
        self,
        message: str,
        offset: int | None = None,
        length: int = 1,
        hint: str | None = None,
        severity: Severity = "error",
    ) -> Problem:
        """A problem at an offset of this text (or with the whole), with nothing secret in it."""
        place = self.place if offset is None else self.place_at(offset, length)
        return Problem(place, self.hide(message), severity, self.hide(hint) if hint else None)

    def hide(self, message: str) -> str:
        """The message with every expanded value, and every quoted piece of one, put back to its variable."""
        for value, name in self.hidden:
            if value:
                message = message.replace(value, name)
                message = _QUOTED.sub(lambda found: f"'{name}'" if found[2] in value else found[0], message)  # noqa: B023
        return message

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls._keep,
            core_schema.union_schema([core_schema.is_instance_schema(Text), core_schema.str_schema(strict=True)]),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda text: text.shown),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return {"type": "string"}

    @classmethod
    def _keep(cls, value: str) -> Text:
        text = value if isinstance(value, Text) else Text(value)
        if text.is_nothing:
            raise PydanticCustomError("nothing", "needs a value")
        return text
