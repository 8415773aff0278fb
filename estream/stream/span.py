"""`start` and `stop` of a query: it sees the rows from the one time on and before the other."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from estream.errors import EStreamError
from estream.spec.check_times import microseconds
from estream.spec.checked import CheckedQuery
from estream.spec.model import Query
from estream.text import Text


def in_span(query: CheckedQuery, time: Column) -> Column:
    """Whether a query sees a row of this time."""
    seen = F.lit(True)
    if isinstance(query.spec, Query):
        if query.spec.start is not None:
            seen = seen & (F.unix_micros(time) >= _instant(query.name, query.spec.start))
        if query.spec.stop is not None:
            seen = seen & (F.unix_micros(time) < _instant(query.name, query.spec.stop))
    return seen


def _instant(name: str, text: Text) -> int:
    if text.startswith("in "):
        message = f"query '{name}': '{text.shown}' counts from when a service launches it; write the time itself"
        raise EStreamError([text.problem(message)])
    return microseconds(text)
