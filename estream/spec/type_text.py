"""Data types as users write them, `decimal(12,2)` or `array<string>`, and why a text is none."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

from estream.spec.types import DataType
from estream.suggest import did_you_mean
from estream.text import Text

_SIMPLE: Final = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "timestamp"),
    *("timestamp_ntz", "date", "binary"),
)
_ALIASES: Final = {
    **{"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "bool": "boolean"},
    **{"dec": "decimal", "numeric": "decimal", "text": "string", "varchar": "string", "char": "string"},
}
_NESTED: Final = {"array": 1, "map": 2, "struct": None}
_SHAPE: Final = re.compile(r"\s*([A-Za-z_]+)\s*(?:\(([\d\s,]*)\)|<(.*)>)?\s*", re.DOTALL)
_DEEPEST: Final = 20
_MOST_DIGITS: Final = 38


def parse_type(text: str, depth: int = 0) -> DataType:
    """The type that the text names; ValueError says what is wrong with it."""
    if depth == 0 and _depth(text) > _DEEPEST:
        raise ValueError(f"the type is nested more than {_DEEPEST} deep")
    shape = _SHAPE.fullmatch(text)
    name = shape[1].lower() if shape else text.strip()
    name = _ALIASES.get(name, name)
    if shape is None or (name not in _SIMPLE and name not in _NESTED):
        near = did_you_mean(name, [*_SIMPLE, *_NESTED])
        raise ValueError(f"{Text(text.strip()).brief} is not a type; {near or 'types are ' + ', '.join(_SIMPLE)}")
    if name in _NESTED:
        return _nested(name, shape[3], text.strip(), depth)
    if shape[3] is not None:
        raise ValueError(f"{name} takes no '<...>'")
    if name == "decimal":
        return _decimal(shape[2] if shape[2] is not None else "10,0")
    return DataType(name)


def _decimal(digits: str) -> DataType:
    sizes = [part.strip() for part in digits.split(",")]
    sizes = [*sizes, "0"] if len(sizes) == 1 else sizes
    if len(sizes) != 2 or not all(size.isdecimal() and len(size) <= 4 for size in sizes):
        raise ValueError(
            f"{Text(f'decimal({digits})').brief} is not a type; write digits and digits after the point, decimal(12,2)"
        )
    if not int(sizes[1]) <= int(sizes[0]) <= _MOST_DIGITS or int(sizes[0]) == 0:
        raise ValueError(
            f"'decimal({digits})' has a wrong size; it has 1 to {_MOST_DIGITS} digits, no more after the point"
        )
    return DataType("decimal", tuple(sizes))


def _nested(name: str, inside: str | None, text: str, depth: int) -> DataType:
    parts = _split(inside or "")
    wanted = _NESTED[name]
    example = {"array": "array<string>", "map": "map<string,int>", "struct": "struct<a:int,b:string>"}[name]
    if not parts or (wanted is not None and len(parts) != wanted):
        raise ValueError(f"{Text(text).brief} is not a type; write it like {example}")
    if name == "array":
        return DataType("array", element=parse_type(parts[0], depth + 1))
    if name == "map":
        return DataType("map", tuple(str(parse_type(part, depth + 1)) for part in parts))
    fields = [part.partition(":") for part in parts]
    if not all(field.strip() and separator for field, separator, _ in fields):
        raise ValueError(f"{Text(text).brief} is not a type; write it like {example}")
    return DataType("struct", tuple(f"{field.strip()}:{parse_type(kind, depth + 1)}" for field, _, kind in fields))


def _depth(text: str) -> int:
    """How deep the brackets stand one in the other."""
    steps = ({"<": 1, ">": -1}.get(letter, 0) for letter in text)
    return max(accumulate(steps), default=0)


def _split(inside: str) -> list[str]:
    """The parts between commas that are in no brackets."""
    parts, level, begin = [], 0, 0
    for position, letter in enumerate(inside):
        level += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and level == 0:
            parts.append(inside[begin:position])
            begin = position + 1
    last = inside[begin:]
    return [*parts, last] if parts or last.strip() else []
