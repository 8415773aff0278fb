"""Scalars of a YAML file as the types that models ask for: whole numbers, numbers, flags, durations.

The reader keeps every scalar as located text; what it stands for is decided where the model says what is wanted. So
`mask: true` is an expression, `enabled: true` a flag, and a variable that is expanded later may be any of them.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, Strict, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import CoreSchema

from estream.duration import parse_duration
from estream.hidden import HiddenNumber
from estream.text import Text

_WHOLE = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_LONGEST_NUMBER = 400


def resolve(value: Any) -> Any:
    """What plain text stands for by YAML 1.2's core schema; anything else is given back as it is."""
    if not isinstance(value, Text) or not value.plain or len(value) > _LONGEST_NUMBER:
        return value
    if value.is_nothing:
        return None
    if value in _FLAGS:
        return _FLAGS[value]
    if _WHOLE.fullmatch(value):
        return int(value, 0) if value[:2] in ("0o", "0x") else int(value)
    if _NUMBER.fullmatch(value):
        return float(value.replace(".inf", "inf").replace(".nan", "nan") if value[-1:].isalpha() else value)
    return value


class _OrVariable:
    """Lets a variable stand in an editor where a number or a flag is wanted."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string", "pattern": r"^\$\{"}]}


def _whole(value: Any, strictly: ValidatorFunctionWrapHandler) -> int:
    number: int = strictly(resolve(value))
    return HiddenNumber(number, value.shown) if isinstance(value, Text) and value.hidden else number


Whole = Annotated[int, Strict(), WrapValidator(_whole), _OrVariable]
"""A whole number."""

Positive = Annotated[int, Strict(), Field(gt=0), WrapValidator(_whole), _OrVariable]
"""A whole number of at least 1."""

Number = Annotated[float, BeforeValidator(lambda value: _number(resolve(value))), _OrVariable]
"""A number."""

Flag = Annotated[bool, Strict(), BeforeValidator(resolve), _OrVariable]
"""True or false."""


def _number(value: Any) -> Any:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else _NotANumber()


class _NotANumber:
    """What no number validator accepts: text that looks like a number is still text."""


class Duration(Text):
    """A duration as written, and its length in microseconds."""

    microseconds: int

    @classmethod
    def of(cls, text: str) -> Self:
        """The duration that the text says; ValueError says what is wrong with it."""
        source = text if isinstance(text, Text) else Text(text)
        try:
            length = parse_duration(source)
        except ValueError as error:
            raise ValueError(source.hide(str(error))) from None
        made = cls(source, source.mark, source.shown, source.hidden, source.plain)
        made.microseconds = HiddenNumber(length, source.shown) if source.hidden else length
        return made

    @classmethod
    def _keep(cls, value: str) -> Duration:
        return value if isinstance(value, Duration) else cls.of(Text._keep(value))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return {
            "type": "string",
            "pattern": r"^\s*([0-9]+(\.[0-9]+)?\s*[A-Za-z]+\s*$|\$\{)",
            "examples": ["10 seconds"],
        }
