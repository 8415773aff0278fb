"""Functions and casts of text over a batch: worked out once for each different text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from estream.event.vector import Vector, numpy_type
from estream.spec.expression import Literal, Operation
from estream.spec.types import DataType

_BLANKS = "".join(map(chr, range(33))) + "\x7f"
"""What Spark trims before it reads a number."""
_WHOLE = re.compile(r"([+-]?)(\d*)(?:\.\d*)?")
_REAL = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?|(?i:inf(?:inity)?|nan))")


def _substring(text: str, position: int, length: int = 2**31 - 1) -> str:
    """Positions count from 1, from the end when negative; what lies before the text counts for the length."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = min(start + length, 2**31 - 1)
    return text[max(start, 0) : max(end, 0)] if end > start else ""


_CALLS: dict[str, Callable[..., Any]] = {
    "upper": str.upper,
    "lower": str.lower,
    "length": len,
    "trim": lambda text: text.strip(" "),
    "ltrim": lambda text: text.lstrip(" "),
    "rtrim": lambda text: text.rstrip(" "),
    "substring": _substring,
    "concat": lambda *texts: "".join(texts),
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": str.__contains__,
}


def call(operation: Operation, operands: Sequence[Vector]) -> Vector:
    """A function of texts, null where an operand is or where there is no value."""
    function = _function(operation)
    columns = [
        vector
        for vector, operand in zip(operands, operation.operands, strict=True)
        if not isinstance(operand, Literal) or operand.value is None
    ]
    if operation.name != "like" and len(columns) == 1 and not isinstance(operation.operands[0], Literal):
        constants = [operand.value for operand in operation.operands[1:] if isinstance(operand, Literal)]
        return _once_each(operation.type, lambda value: function(value, *constants), operands[0])
    if operation.name == "like":
        return _once_each(operation.type, function, operands[0])
    rows = zip(*(_python(vector) for vector in operands), strict=True)
    return _vector([None if None in row else function(*row) for row in rows], operation.type)


def _once_each(kind: DataType, function: Callable[[Any], Any], operand: Vector) -> Vector:
    array = operand.values if isinstance(operand.values, pa.Array) else _arrow(operand)
    encoded = array.dictionary_encode()
    results = [None if value is None else function(value) for value in encoded.dictionary.to_pylist()]
    column = pa.array(results, _arrow_type(kind)).take(encoded.indices)
    return _vector(column.to_pylist() if kind.name != "string" else column, kind)


def _arrow(vector: Vector) -> Any:
    return pa.array(np.ascontiguousarray(vector.values), mask=np.ascontiguousarray(vector.nulls))


def _arrow_type(kind: DataType) -> Any:
    return pa.string() if kind.name == "string" else pa.from_numpy_dtype(numpy_type(kind))


def _python(vector: Vector) -> list[Any]:
    values: list[Any] = (vector.values if isinstance(vector.values, pa.Array) else _arrow(vector)).to_pylist()
    return values


def _vector(values: Any, kind: DataType) -> Vector:
    array = values if isinstance(values, pa.Array) else pa.array(values, _arrow_type(kind))
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if kind.name == "string":
        return Vector(array, nulls)
    return Vector(array.fill_null(False if kind.name == "boolean" else 0).to_numpy(zero_copy_only=False), nulls)


def _function(operation: Operation) -> Callable[..., Any]:
    if operation.name == "like":
        constants = [part.value for part in operation.operands[1:] if isinstance(part, Literal)]
        matches = like_pattern(*map(str, constants)).fullmatch
        return lambda text: matches(text) is not None
    if operation.name == "cast":
        return _cast(operation.operands[0].type.name, operation.type.name)
    return _CALLS[operation.name]


def like_pattern(pattern: str, escape: str = "\\") -> re.Pattern[str]:
    """The regular expression of a LIKE pattern."""
    parts, rest = [], iter(pattern)
    for character in rest:
        if character == escape:
            parts.append(re.escape(next(rest, "")))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL)


def _cast(source: str, target: str) -> Callable[[Any], Any]:
    if target == "string":
        return {"boolean": lambda truth: "true" if truth else "false"}.get(source, str)
    return _real if target == "double" else partial(_whole, bits=31 if target == "int" else 63)


def _whole(text: str, bits: int) -> int | None:
    """Spark cuts the digits after the point off, and has no value for what is no number or too large."""
    match = _WHOLE.fullmatch(text.strip(_BLANKS))
    if match is None or not (match[2] or "." in text) or not match[0].strip("+-"):
        return None
    value = int(f"{match[1]}{match[2] or 0}")
    return value if -(2**bits) <= value < 2**bits else None


def _real(text: str) -> float | None:
    stripped = text.strip(_BLANKS)
    return (
        float(stripped.rstrip("dDfF") if stripped[-1:] in "dDfF" and stripped[:1] != "i" else stripped)
        if _REAL.fullmatch(stripped)
        else None
    )
