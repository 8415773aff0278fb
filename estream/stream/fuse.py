"""Stateless queries of a stream in one pass: their conditions become columns, so that one scan serves them all.

The columns of every query stand in a struct under the query's name, and whether the row is in the query in a flag.
Spark resolves the users' SQL; its optimizer takes the structs apart again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from estream.spec.checked import Checked, CheckedQuery
from estream.stream.column import to_column
from estream.stream.future import BEAT
from estream.stream.span import in_span
from estream.stream.sql_text import is_plain, sql_of, with_condition

CARRIED = "__carried"
REFUSED = "refused?"
_HELD = "__held"


@dataclass(frozen=True, slots=True)
class Fused:
    """A stream with the stateless queries on it, in one frame of one column."""

    frame: DataFrame
    members: tuple[str, ...]

    def column(self, query: str, name: str) -> Column:
        """A column of one of the queries."""
        return F.col(f"{CARRIED}.`{query}`.`{name}`")

    @property
    def refused(self) -> Column:
        """Why the row is refused: what the scan had beside the stream's own columns."""
        return F.col(f"{CARRIED}.`{REFUSED}`")

    def holds(self, query: str) -> Column:
        """Whether the row is in a query."""
        return _holds(query, self.members[0])


def stream_of(checked: Checked, name: str) -> str | None:
    """The stream on which a query can be computed row by row; None if it needs more than that."""
    query = checked.queries[name]
    if query.kind == "stream":
        return name
    if query.stateful or len(query.reads) != 1 or query.reads[0] not in checked.queries:
        return None
    if query.kind == "sql" and not is_plain(sql_of(query)):
        return None
    return stream_of(checked, query.reads[0]) if query.kind in ("sql", "where") else None


def fuse(
    session: SparkSession, checked: Checked, stream: str, scan: DataFrame, refused: Column, wanted: set[str]
) -> Fused:
    """One frame for the stream and those of its queries that are wanted, with all they read.

    `refused` says of a row of the scan why it is refused, and is null for one that is right.
    """
    members = [name for name in checked.queries if stream_of(checked, name) == stream]
    needed = set(wanted)
    for name in reversed(members):
        if name in needed:
            needed.update(checked.queries[name].reads)
    own = F.struct(*(F.col(f"`{column}`") for column in checked.queries[stream].columns))
    flag = F.col(BEAT) if BEAT in scan.columns else F.lit(False)
    # There is nothing but columns in the struct, or Spark would make it for every row instead of taking it apart.
    first = F.struct(F.col(f"`{REFUSED}`"), own.alias(stream), flag.alias(_flag(stream)))
    frame = scan.withColumn(REFUSED, refused).select(first.alias(CARRIED))
    kept = [stream]
    for name in members:
        if name in needed and name != stream:
            frame = _add(session, frame, kept, checked.queries[name], checked)
            kept.append(name)
    return Fused(frame, tuple(kept))


def _flag(query: str) -> str:
    """The field that says whether the row is in a query; of the stream itself, whether it is only a heartbeat."""
    return f"{query}?"


def _holds(query: str, stream: str) -> Column:
    flag = F.col(f"{CARRIED}.`{_flag(query)}`")
    return F.col(f"{CARRIED}.`{REFUSED}`").isNull() & ~flag if query == stream else flag


def _add(session: SparkSession, frame: DataFrame, kept: list[str], query: CheckedQuery, checked: Checked) -> DataFrame:
    """The frame with one more query in it."""
    source = query.reads[0]
    flat = frame.select(f"{CARRIED}.`{source}`.*", CARRIED)
    if query.kind == "sql":
        view = f"__{query.name}"
        flat.createOrReplaceTempView(view)
        flat = session.sql(with_condition(sql_of(query), checked.queries[source].columns, view, (_HELD, CARRIED)))
        condition = F.col(_HELD)
    else:
        condition = F.lit(True)
    if query.where is not None:
        condition = condition & to_column(query.where, lambda attribute: F.col(f"`{attribute.name}`"))
    own = F.struct(*(F.col(f"`{column}`") for column in query.columns))
    parts = [REFUSED, *(part for name in kept for part in (name, _flag(name)))]
    before = [F.col(f"{CARRIED}.`{part}`") for part in parts]
    time = F.col(f"{CARRIED}.`{source}`.`{checked.queries[source].time}`")
    holds = _holds(source, kept[0]) & F.coalesce(condition & in_span(query, time), F.lit(False))
    return flat.select(F.struct(*before, own.alias(query.name), holds.alias(_flag(query.name))).alias(CARRIED))
