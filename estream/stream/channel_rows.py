"""Rows written as JSON, one object a line, as typed Arrow rows; every value that does not fit is told at its place."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

import pyarrow as pa

from estream.errors import EStreamError, Place, Problem
from estream.stream.channel_schema import type_name
from estream.suggest import suggestion

MOST_PROBLEMS: Final = 20
"""More wrong rows than these are not told one by one."""

_Convert: TypeAlias = Callable[[Any], Any]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def rows_from_json(lines: Iterable[str], schema: pa.Schema, file: str) -> pa.Table:
    """The rows of JSON lines; EStreamError tells what is wrong, with line and column. Empty lines are skipped."""
    reader = RowReader.of(schema, file)
    problems: list[Problem] = []
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            row, found = reader.read(line, number)
            problems += found
            rows.append(row)
        if len(problems) >= MOST_PROBLEMS:
            break
    if problems:
        raise EStreamError(problems[:MOST_PROBLEMS])
    return table_of(rows, schema)


def rows_from_document(text: str, schema: pa.Schema, file: str) -> pa.Table:
    """The rows of one JSON document: an object, or a list of them, on as many lines as it likes."""
    try:
        document = json.loads(text, parse_constant=_no_constant, parse_float=_exact)
    except json.JSONDecodeError as error:
        raise EStreamError([Problem(Place(file, error.lineno, error.colno), f"this is no JSON: {error.msg}")]) from None
    except (ValueError, RecursionError) as error:
        raise EStreamError([Problem(Place(file, 1, 1), f"this is no JSON: {error}")]) from None
    return rows_from_values(document if isinstance(document, list) else [document], schema, file)


def rows_from_values(values: Sequence[Any], schema: pa.Schema, subject: str) -> pa.Table:
    """The rows of dictionaries with values of JSON or Python's own dates and times; problems count rows as lines."""
    reader = RowReader.of(schema, subject)
    problems: list[Problem] = []
    rows: list[dict[str, Any]] = []
    for number, value in enumerate(values, 1):
        row, found = reader.convert(value, "", number)
        problems += found
        rows.append(row)
    if problems:
        raise EStreamError(problems[:MOST_PROBLEMS])
    return table_of(rows, schema)


def table_of(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """A table of converted rows; what a row lacks is null."""
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.table(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class RowReader:
    """Reads rows of a schema one by one; `file` is what problems name."""

    schema: pa.Schema
    converters: dict[str, _Convert]
    file: str

    @classmethod
    def of(cls, schema: pa.Schema, file: str, written: bool = False) -> RowReader:
        """The reader for a schema; of `written` rows, as in CSV, numbers and flags are text too."""
        make = _converter_of_text if written else _converter
        return cls(schema, {field.name: make(field.type) for field in schema}, file)

    def read(self, line: str, number: int) -> tuple[dict[str, Any], list[Problem]]:
        """The row of a line, and what is wrong with it."""
        try:
            value = json.loads(line, parse_constant=_no_constant, parse_float=_exact)
        except json.JSONDecodeError as error:
            place = Place(self.file, number, error.colno)
            return {}, [Problem(place, f"this is no JSON: {error.msg[0].lower()}{error.msg[1:]}")]
        except (ValueError, RecursionError) as error:
            return {}, [Problem(Place(self.file, number, 1), f"this is no JSON: {error}")]
        return self.convert(value, line, number)

    def convert(self, value: Any, line: str, number: int) -> tuple[dict[str, Any], list[Problem]]:
        """The values of a row in their types, and what is wrong with them."""
        start = Place(self.file, number, 1)
        if not isinstance(value, dict):
            return {}, [Problem(start, f'a row is an object like {{"n": 1}}; found {_found(value)}')]
        row: dict[str, Any] = {}
        problems: list[Problem] = []
        for name, given in value.items():
            place = Place(self.file, number, max(line.find(json.dumps(name)), 0) + 1, max(len(str(name)), 1))
            convert = self.converters.get(name)
            if convert is None:
                problems.append(Problem(place, f"unknown column {name!r}; {suggestion(str(name), self.schema.names)}"))
                continue
            try:
                row[name] = None if given is None else convert(given)
            except (ValueError, OverflowError, InvalidOperation):
                wanted = type_name(self.schema.field(name).type)
                problems.append(Problem(place, f"column '{name}' is {wanted}; found {_found(given)}"))
        return row, problems


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not allowed")


class _exact(float):
    """A number that knows how it was written, so that a decimal loses nothing."""

    written: str

    def __new__(cls, text: str) -> _exact:
        made = super().__new__(cls, text)
        made.written = text
        return made


def _found(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value[:60]!r}"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return json.dumps(value) if isinstance(value, (bool, int, float, type(None))) else str(value)[:60]


def _converter(kind: pa.DataType) -> _Convert:
    """What turns JSON's value into one of the type, or raises ValueError."""
    if pa.types.is_list(kind):
        inner = _or_null(_converter(kind.value_type))
        return lambda value: [inner(each) for each in _of(value, list)]
    if pa.types.is_map(kind):
        key, item = _converter(kind.key_type), _or_null(_converter(kind.item_type))
        return lambda value: [(key(name), item(each)) for name, each in _of(value, dict).items()]
    if pa.types.is_struct(kind):
        fields = {field.name: _or_null(_converter(field.type)) for field in kind}
        return lambda value: _struct(_of(value, dict), fields)
    if pa.types.is_integer(kind):
        bound = 2 ** (kind.bit_width - 1)
        return lambda value: _within(_whole(value), bound)
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind.precision, kind.scale)
    return next(convert for matches, convert in _PLAIN if matches(kind))


def _converter_of_text(kind: pa.DataType) -> _Convert:
    """What turns text into a value of the type; text that is nested is JSON."""
    convert = _converter(kind)
    if pa.types.is_string(kind) or pa.types.is_temporal(kind) or pa.types.is_binary(kind) or pa.types.is_decimal(kind):
        return convert
    return lambda text: convert(json.loads(text.strip().lower() if pa.types.is_boolean(kind) else text))


def _or_null(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _of(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError
    return value


def _struct(value: dict[str, Any], fields: dict[str, _Convert]) -> dict[str, Any]:
    if not value.keys() <= fields.keys():
        raise ValueError
    return {name: fields[name](each) for name, each in value.items()}


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError
    return value


def _within(value: int, bound: int) -> int:
    if not -bound <= value < bound:
        raise ValueError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError
    return float(value)


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise ValueError
    exact = Decimal(value.written if isinstance(value, _exact) else str(value))
    if not exact.is_finite() or exact != round(exact, scale) or abs(exact) >= Decimal(10) ** (precision - scale):
        raise ValueError
    return round(exact, scale)


def _moment(value: Any) -> datetime:
    """ISO 8601 text, a Python time, or microseconds since the epoch; UTC where no offset is written."""
    if isinstance(value, datetime):
        moment = value
    elif isinstance(value, str):
        moment = datetime.fromisoformat(value)
    else:
        moment = _EPOCH + timedelta(microseconds=_whole(value))
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _day(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    return date.fromisoformat(_of(value, str))


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else base64.b64decode(_of(value, str), validate=True)


_PLAIN: Final[tuple[tuple[Callable[[pa.DataType], bool], _Convert], ...]] = (
    (pa.types.is_boolean, lambda value: _of(value, bool)),
    (pa.types.is_floating, _number),
    (pa.types.is_string, lambda value: _of(value, str)),
    (pa.types.is_timestamp, _moment),
    (pa.types.is_date, _day),
    (pa.types.is_binary, _bytes),
)
