"""The Arrow types that carry the plain types of Spark SQL, by their names."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "interval": pa.duration("us"),
    "void": pa.null(),
}
