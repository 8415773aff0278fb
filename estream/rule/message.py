"""Values between a process and its isolated callbacks: JSON that keeps the types Python gave them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

_TO: dict[type, tuple[str, Callable[[Any], Any]]] = {
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    timedelta: ("timedelta", lambda value: value // timedelta(microseconds=1)),
    Decimal: ("decimal", str),
    bytes: ("bytes", lambda value: base64.b64encode(value).decode("ascii")),
}
_FROM: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "timedelta": lambda value: timedelta(microseconds=value),
    "decimal": Decimal,
    "bytes": base64.b64decode,
}


def value_to_message(value: Any) -> Any:
    """The value as JSON data; what JSON does not know is a pair of its type and its text."""
    if isinstance(value, (list, tuple)):
        return {"list": [value_to_message(one) for one in value]}
    if isinstance(value, Mapping):
        return {"map": [[value_to_message(key), value_to_message(one)] for key, one in value.items()]}
    if type(value) in _TO:
        name, write = _TO[type(value)]
        return {name: write(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a value of type {type(value).__name__} cannot be an attribute of an event")


def value_from_message(value: Any) -> Any:
    """The value that `value_to_message` wrote."""
    if not isinstance(value, dict):
        return value
    ((name, inner),) = value.items()
    if name == "map":
        return {value_from_message(key): value_from_message(one) for key, one in inner}
    return [value_from_message(one) for one in inner] if name == "list" else _FROM[name](inner)
