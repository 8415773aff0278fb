"""A file of rows with a time column, for playing back: rows in order of time, and the records that cannot be read."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from estream.errors import EStreamError, Place, Problem
from estream.stream.channel_rows import RowReader, table_of
from estream.stream.source_rows import require_columns

KINDS: Final = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that could not be read."""

    line: int
    """In a Parquet file, the number of the row."""
    record: str
    reason: str


@dataclass(frozen=True, slots=True)
class Recording:
    """The rows of a file in order of time, and what was refused."""

    rows: pa.Table
    refused: tuple[Refused, ...]


def load(path: str, time: str, schema: pa.Schema) -> Recording:
    """The file with the columns of the schema; it is read again only if it changed."""
    try:
        state = Path(path).stat()
    except OSError as error:
        raise EStreamError(
            f"source 'replay': cannot read {path}: {(error.strerror or 'no such file').lower()}"
        ) from None
    return _load(path, time, schema, state.st_mtime_ns, state.st_size)


def columns_of(path: str) -> pa.Schema:
    """The columns that a file has by itself: only Parquet says."""
    if _kind(path) != "parquet":
        raise EStreamError(f"source 'replay': {path} does not say its types; give the stream a schema")
    return pq.read_schema(path)


@lru_cache(maxsize=2)
def _load(path: str, time: str, schema: pa.Schema, changed: int, size: int) -> Recording:
    require_columns(schema.names, [time], f"the schema of {path}")
    try:
        rows, refused = _READERS[_kind(path)](path, time, schema)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise EStreamError(f"source 'replay': cannot read {path}: {str(error).splitlines()[0]}") from None
    # Rows of one time stay in the order of the file, or a run that goes on would see another order.
    order = pc.sort_indices(
        rows.append_column("\0", pa.array(range(rows.num_rows))), [(time, "ascending"), ("\0", "ascending")]
    )
    return Recording(rows.take(order), tuple(refused))


def _kind(path: str) -> str:
    kind = KINDS.get(Path(path).suffix.lower())
    if kind is None:
        raise EStreamError(f"source 'replay': {path} is none of {', '.join(KINDS)}")
    return kind


def _read_parquet(path: str, time: str, schema: pa.Schema) -> tuple[pa.Table, list[Refused]]:
    require_columns(pq.read_schema(path).names, schema.names, path)
    rows = pq.read_table(path, columns=schema.names).cast(schema)
    untimed = pc.is_null(rows[time])
    numbers = pc.indices_nonzero(untimed).to_pylist()
    refused = [Refused(number + 1, str(rows.slice(number, 1).to_pylist()[0]), _no_time(time)) for number in numbers]
    return rows.filter(pc.invert(untimed)), refused


def _read_json(path: str, time: str, schema: pa.Schema) -> tuple[pa.Table, list[Refused]]:
    reader = RowReader.of(schema, path)
    with Path(path).open(encoding="utf-8") as file:
        lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
        return _sort_out(((number, line, reader.read(line, number)) for number, line in lines), time, schema)


def _read_csv(path: str, time: str, schema: pa.Schema) -> tuple[pa.Table, list[Refused]]:
    """All at once; only a file with a record that does not fit is read record by record."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        require_columns(next(csv.reader(file), []), schema.names, path)
    options = pa.csv.ConvertOptions(
        column_types=schema, include_columns=schema.names, strings_can_be_null=True, null_values=[""]
    )
    try:
        rows = pa.csv.read_csv(path, convert_options=options)
    except pa.ArrowInvalid:
        return _read_csv_slowly(path, time, schema)
    return _read_csv_slowly(path, time, schema) if rows[time].null_count else (rows, [])


def _read_csv_slowly(path: str, time: str, schema: pa.Schema) -> tuple[pa.Table, list[Refused]]:
    reader = RowReader.of(schema, path, written=True)
    with Path(path).open(newline="", encoding="utf-8") as file:
        records = csv.DictReader(file)
        read = ((records.line_num, _line(record), _convert(reader, record)) for record in records)
        return _sort_out(read, time, schema)


def _convert(reader: RowReader, record: Mapping[str | None, Any]) -> tuple[dict[str, Any], list[Problem]]:
    # Python's reader puts what is beyond the header under None, and None where a field is missing.
    if None in record or None in record.values():
        return {}, [Problem(Place(reader.file, 1, 1), "it has more or fewer fields than the first line")]
    cells = {name: record[name] if record[name] != "" else None for name in reader.schema.names}
    return reader.convert(cells, "", 1)


def _line(record: Mapping[str | None, Any]) -> str:
    return ",".join(str(value) for value in record.values() if value is not None)


def _sort_out(
    records: Iterable[tuple[int, str, tuple[dict[str, Any], list[Problem]]]], time: str, schema: pa.Schema
) -> tuple[pa.Table, list[Refused]]:
    """The rows that are right, and the records that are not, with the first reason of each."""
    rows: list[dict[str, Any]] = []
    refused: list[Refused] = []
    for line, record, (row, problems) in records:
        if problems or row.get(time) is None:
            reason = problems[0].message if problems else _no_time(time)
            refused.append(Refused(line, record.rstrip("\n"), reason))
        else:
            rows.append(row)
    return table_of(rows, schema), refused


def _no_time(time: str) -> str:
    return f"it has no time: '{time}' is null"


_READERS: Final[dict[str, Callable[[str, str, pa.Schema], tuple[pa.Table, list[Refused]]]]] = {
    "csv": _read_csv,
    "json": _read_json,
    "parquet": _read_parquet,
}
