"""Bodies of requests as rows: JSON lines, a JSON document, or an Arrow stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from estream.errors import EStreamError
from estream.stream.channel_rows import rows_from_document, rows_from_json


def read_body(content_type: str, body: bytes, schema: pa.Schema) -> pa.Table:
    """The rows of a body; EStreamError tells what is wrong with it."""
    try:
        return _READERS[content_type](body, schema)
    except UnicodeDecodeError as error:
        raise EStreamError(f"byte {error.start} of the body is no UTF-8") from None


def _lines(body: bytes, schema: pa.Schema) -> pa.Table:
    return rows_from_json(body.decode().split("\n"), schema, "body")


def _document(body: bytes, schema: pa.Schema) -> pa.Table:
    return rows_from_document(body.decode(), schema, "body")


def _arrow(body: bytes, schema: pa.Schema) -> pa.Table:
    """The rows of an Arrow stream; the channel sees to it that its columns fit."""
    try:
        table = pa.ipc.open_stream(body).read_all()
        # What comes from outside may say of itself what is not so.
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise EStreamError(f"this is no Arrow stream: {str(error).splitlines()[0]}") from None
    return table


_READERS: Final[dict[str, Callable[[bytes, pa.Schema], pa.Table]]] = {
    "application/x-ndjson": _lines,
    "application/json": _document,
    "application/vnd.apache.arrow.stream": _arrow,
}
CONTENT_TYPES: Final = tuple(_READERS)
"""What a body may be."""
