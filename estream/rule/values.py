"""Attribute values as JSON and back, exact for every type a column can have."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from estream.rule.detection import Detected, Occurrence, moment
from estream.spec.types import DataType

if TYPE_CHECKING:
    from estream.rule.layout import Layout


def plain(value: Any) -> Any:
    """What JSON can carry of a value: times as ISO text, decimals and numbers that are not finite as text."""
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return value // timedelta(microseconds=1)
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Mapping():
            return {str(key): plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
    return value


_SIMPLE = (str, int, type(None))
_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


def _attributes(one: Occurrence) -> dict[str, Any]:
    values = one.attributes
    return {name: value if isinstance(value, _SIMPLE) else plain(value) for name, value in values.items()}


def constituents_to_json(constituents: Sequence[Occurrence]) -> str:
    """The constituents as compact JSON: event, id, time and attributes of each."""
    rows = [(one.event, one.id, one.microseconds, _attributes(one)) for one in constituents]
    return _ENCODE(rows)


def constituents_from_json(text: str, layout: Layout | None = None) -> tuple[Occurrence, ...]:
    """The constituents that `constituents_to_json` wrote; with a layout, values have their types again."""
    return tuple(
        Occurrence(event, number, time, MappingProxyType(_typed(layout, event, attributes) if layout else attributes))
        for event, number, time, attributes in json.loads(text)
    )


def _typed(layout: Layout, event: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {one.name: one.type for one in layout.leaves.get(event, ())}
    return {name: _value(value, kinds.get(name)) for name, value in attributes.items()}


_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "double": float,
    "decimal": Decimal,
    "timestamp": datetime.fromisoformat,
    "timestamp_ntz": datetime.fromisoformat,
    "date": date.fromisoformat,
    "binary": base64.b64decode,
    "interval": lambda value: timedelta(microseconds=value),
}


def _value(value: Any, kind: DataType | None) -> Any:
    if value is None or kind is None:
        return value
    if kind.element is not None and isinstance(value, list):
        return [_value(one, kind.element) for one in value]
    reader = _READERS.get(kind.name)
    try:
        return value if reader is None else reader(value)
    except (ArithmeticError, TypeError, ValueError):
        return value  # recorded when the attribute had another type


def detection_as_data(detected: Detected) -> dict[str, Any]:
    """The whole detection as JSON data, with times as ISO text: what files, webhooks and channels get."""
    data: dict[str, Any] = {
        "event": detected.event,
        "id": f"{detected.id % 2**64:016x}",
        "start": moment(detected.start).isoformat(),
        "end": moment(detected.end).isoformat(),
        "constituents": [
            {"event": one.event, "time": one.time.isoformat(), "attributes": _attributes(one)}
            for one in detected.constituents
        ],
    }
    if detected.tick is not None:
        data["tick"] = detected.tick
    if detected.ticks is not None:
        data["ticks"] = [moment(tick).isoformat() for tick in detected.ticks]
    return data


def detection_as_row(detected: Detected, key: str) -> dict[str, Any]:
    """The detection as a flat row for a channel: key, event, id, times, `Leaf_attribute` of the last occurrences."""
    row: dict[str, Any] = {
        "key": key,
        "event": detected.event,
        "id": detected.id,
        "start": moment(detected.start),
        "end": moment(detected.end),
    }
    for one in detected.constituents:
        row.update({f"{one.event}_{name}": value for name, value in one.attributes.items()})
    return row
