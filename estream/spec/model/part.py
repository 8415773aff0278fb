"""What all parts of the language share: names, columns, choices, and the frozen base of every model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from estream.text import Text

Context: TypeAlias = Literal["unrestricted", "recent", "chronicle", "continuous", "cumulative"]
Semantics: TypeAlias = Literal["interval", "point"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_NAME = 100
"""Names become names of files, with something before and after."""
RESERVED = ("or", "and", "not", "absent", "times")
"""Words of event expressions, in any case: no event may be called so."""


class Part(BaseModel):
    """A part of a CEQ file: frozen, and with no keys but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class DescribedPart(Part):
    """A part that people may say something about."""

    description: Text | None = Field(None, description="What it is for, in words.", examples=["Cars that do not move."])


def _name(text: Text) -> Text:
    if text.hidden:
        raise PydanticCustomError("variable", "a name is shown, so that it cannot come from a variable; write it out")
    if not _NAME.fullmatch(text):
        raise PydanticCustomError("name", "a name has letters, digits and _ and begins with no digit")
    if len(text) > _LONGEST_NAME:
        raise PydanticCustomError("long", "a name has at most {most} characters", {"most": _LONGEST_NAME})
    return text


def _event_name(text: Text) -> Text:
    if text.lower() in RESERVED:
        raise PydanticCustomError("reserved", "the word is reserved in event expressions; choose another name")
    return _name(text)


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_NAME_SCHEMA = WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})
Name: TypeAlias = Annotated[Text, AfterValidator(_name), _NAME_SCHEMA]
"""Letters, digits and _, beginning with no digit."""

EventName: TypeAlias = Annotated[Text, AfterValidator(_event_name), _NAME_SCHEMA]
"""A name that is no word of event expressions."""

_LIST_SCHEMA = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
Columns: TypeAlias = Annotated[tuple[Text, ...], BeforeValidator(_one_or_many), _LIST_SCHEMA]
"""Names of columns: a list, or one alone."""

Expression: TypeAlias = Annotated[Text, WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""A Spark SQL expression."""

Options: TypeAlias = dict[Text, Expression]
"""Options by name; their values are text, whatever they look like."""


def only_one(part: BaseModel, keys: tuple[str, ...], required: bool = True) -> None:
    """Refuse a part that has two of the keys, or none where one is required."""
    words = {key: type(part).model_fields[key].alias or key for key in keys}
    given = [words[key] for key in keys if getattr(part, key) is not None]
    if len(given) > 1:
        raise PydanticCustomError(
            "both", "has both '{first}' and '{key}'; keep one", {"first": given[0], "key": given[1]}
        )
    if required and not given:
        raise PydanticCustomError("neither", "needs one of {keys}", {"keys": ", ".join(words.values())})


def is_map(value: object) -> str:
    """The tag of a value that may be a map or something simpler."""
    return "map" if isinstance(value, (Mapping, BaseModel)) else "plain"
