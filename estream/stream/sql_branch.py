"""Queries that look at more than one row: Spark computes them, each over scans of its own.

A stream that is quiet for its `idle_after` must not hold the windows of the others. So heartbeats are mixed into every
scan before its watermark is declared, and taken out after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from estream.errors import EStreamError
from estream.spec import model
from estream.spec.checked import Checked, CheckedQuery
from estream.stream.clock import FORMAT
from estream.stream.column import to_column
from estream.stream.future import BEAT
from estream.stream.source import Files, open_input, open_stream, open_table
from estream.stream.span import in_span
from estream.stream.sql_text import over_views, sql_of

_BEAT = "__heartbeat"


@dataclass(frozen=True, slots=True)
class Reader:
    """How streams are read: live, or from bounded input. `beats` is the file of heartbeats of a live run."""

    session: SparkSession
    checked: Checked
    files: Files
    beats: str | None = None
    numbers: count[int] = field(default_factory=count)

    def stream(self, stream: str, scan: str) -> DataFrame:
        """The rows of a stream, by a scan of this name."""
        query = self.checked.queries[stream]
        if self.files.inputs is None:
            return open_stream(self.session, query, scan, self.files)
        if stream not in self.files.inputs:
            raise EStreamError(f"stream '{stream}' has no input; give one: --input {stream}=PATH")
        return open_input(self.session, query, self.files.inputs[stream])

    @property
    def is_live(self) -> bool:
        """Whether rows go on coming."""
        return self.files.inputs is None


def sql_frame(checked: Checked, name: str, reader: Reader) -> DataFrame:
    """The rows of a query, over scans that are named after it."""
    return _Sql(checked, reader, name).frame(checked.queries[name])


@dataclass(slots=True)
class _Sql:
    checked: Checked
    reader: Reader
    owner: str
    scans: dict[str, int] = field(default_factory=dict)

    def frame(self, query: CheckedQuery) -> DataFrame:
        if query.kind == "stream":
            return self._scan(query)
        if query.kind == "sql":
            frame = self.reader.session.sql(over_views(sql_of(query), lambda name: self._view(name, query)))
        elif query.kind == "where":
            frame = self._seen(query, self.checked.queries[query.reads[0]])
        else:
            raise EStreamError(f"query '{query.name}': {query.kind} does not run on Spark below another query yet")
        if query.where is not None:
            frame = frame.filter(to_column(query.where, lambda attribute: F.col(f"`{attribute.name}`")))
        return frame

    def _seen(self, query: CheckedQuery, source: CheckedQuery) -> DataFrame:
        """The rows of a source that a query sees."""
        frame = self.frame(source)
        return frame if source.time is None else frame.filter(in_span(query, F.col(f"`{source.time}`")))

    def _view(self, name: str, query: CheckedQuery) -> str:
        """A view for one place where a query reads a stream, query or table."""
        tables = {table.lower(): spec for table, spec in self.checked.ceq.tables.items()}
        view = f"__{self.owner}_{next(self.reader.numbers)}"
        if name.lower() in tables:
            frame = open_table(self.reader.session, tables[name.lower()], self.reader.files)
        else:
            queries = {known.lower(): checked for known, checked in self.checked.queries.items()}
            frame = self._seen(query, queries[name.lower()])
        frame.createOrReplaceTempView(view)
        return view

    def _scan(self, query: CheckedQuery) -> DataFrame:
        spec = query.spec
        if not isinstance(spec, model.Stream) or query.time is None:
            raise TypeError(f"'{query.name}' is no stream")
        again = self.scans[query.name] = self.scans.get(query.name, 0) + 1
        name = f"{self.owner}__{query.name}" + (f"_{again}" if again > 1 else "")
        read = self.reader.stream(query.name, name)
        flag = F.col(BEAT) if BEAT in read.columns else F.lit(False)
        rows = read.select(*(f"`{column}`" for column in query.columns), flag.alias(_BEAT))
        if not self.reader.is_live:
            return rows.drop(_BEAT).filter(F.col(f"`{query.time}`").isNotNull())
        settings = self.checked.ceq.settings.stream
        ahead = (spec.max_ahead or settings.max_ahead).microseconds
        time = F.col(f"`{query.time}`")
        timely = F.unix_micros(time) <= F.unix_micros(F.current_timestamp()) + F.lit(ahead)
        mixed = rows.filter(timely).unionByName(self._beats(query, name))
        delay = (spec.watermark or settings.watermark).microseconds
        watched = mixed.withWatermark(query.time, f"{delay} microseconds")
        # Spark would push a filter on the flag alone below the watermark, where the heartbeats must still be; and so
        # the user's own, and then rows that are filtered would not move time. What is not deterministic stops it.
        here = (F.rand() + F.rand()) >= 0
        return watched.filter(~(F.col(_BEAT) & time.isNotNull()) & here).drop(_BEAT)

    def _beats(self, query: CheckedQuery, name: str) -> DataFrame:
        reader = self.reader.session.readStream.format(FORMAT).name(f"{name}__clock")
        if self.reader.beats is not None:
            reader = reader.option("beats", self.reader.beats)
        beat = F.get_json_object("beats", f"$.{query.name}").cast("bigint")
        columns = [
            (F.timestamp_micros(beat) if column == query.time else F.lit(None).cast(str(kind))).alias(column)
            for column, kind in query.columns.items()
        ]
        return reader.load().filter(beat.isNotNull()).select(*columns, F.lit(True).alias(_BEAT))
