"""Streams, tables and continuous queries, as written."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from estream.scalar import Duration, Number, Positive
from estream.spec.model.part import Columns, DescribedPart, Expression, Name, Options, Part, only_one
from estream.text import Text

QueryKind: TypeAlias = Literal["sql", "modify", "window", "where", "unique", "first_unique", "cel"]


class Source(Part):
    """Where rows come from: a Spark format with its options, or a channel."""

    format: Text | None = Field(
        None, description="A Spark data source or one of EStream's own.", examples=["kafka", "json", "linear_road"]
    )
    channel: Name | None = Field(
        None, description="A channel that a query or event publishes to.", examples=["accidents"]
    )
    options: Options = Field({}, description="Options of the format.", examples=[{"path": "data/quotes"}])

    @model_validator(mode="after")
    def _format_or_channel(self) -> Self:
        only_one(self, ("format", "channel"))
        return self


class Stream(DescribedPart):
    """A stream of rows with a time column."""

    source: Source = Field(description="Where the rows come from.")
    columns: dict[Name, Text] = Field(
        alias="schema",
        min_length=1,
        description="Columns and their Spark SQL types.",
        examples=[{"ts": "timestamp", "speed": "double"}],
    )
    time: Text = Field(description="The column that holds the time of a row.", examples=["ts"])
    watermark: Duration | None = Field(None, description="How late a row may come.", examples=["10 seconds"])
    idle_after: Duration | None = Field(
        None, description="With nothing new for so long the stream holds nobody up.", examples=["30 seconds"]
    )
    max_ahead: Duration | None = Field(
        None, description="A row further ahead of the clock is refused.", examples=["1 hour"]
    )


class Table(DescribedPart):
    """Static data that queries join with."""

    source: Source = Field(description="Where the rows come from.")
    columns: dict[Name, Text] | None = Field(
        None,
        alias="schema",
        min_length=1,
        description="Columns and their Spark SQL types.",
        examples=[{"car_id": "bigint"}],
    )
    refresh: Duration | None = Field(None, description="How often it is read anew.", examples=["1 hour"])


class Modify(Part):
    """A stream modifier: the change between consecutive rows, or between the ends of a window."""

    function: Literal["adiff", "rdiff", "aslope"] = Field(description="Difference, relative difference or slope.")
    attributes: Columns = Field(min_length=1, description="Columns it is applied to.", examples=[["speed"]])
    over: Text | None = Field(None, description="aslope: the column the change is divided by.", examples=["x_pos"])
    partition_by: Columns = Field((), description="Rows are consecutive within these columns.", examples=["car_id"])
    keep: Literal["old", "new"] = Field("old", description="From which of the two rows the other columns come.")
    pseudo: Number = Field(0.0, description="Added against division by zero.", examples=[0.001])
    window: Duration | None = Field(
        None, description="Take first and last row of windows of this length.", examples=["1 hour"]
    )
    every: Duration | None = Field(
        None, description="Begin a window so often: overlapping windows.", examples=["5 minutes"]
    )
    until: Text | None = Field(None, description="Time after which it stops.", examples=["2026-12-24T22:00:00Z"])

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.function == "aslope") != (self.over is not None):
            raise PydanticCustomError("over", "'over' belongs to aslope, which needs it")
        if self.every is not None and self.window is None:
            raise PydanticCustomError("every", "'every' needs 'window'")
        return self


class Window(Part):
    """A window by rows or by time, sliding row by row or in batches."""

    rows: Positive | None = Field(None, description="The last so many rows.", examples=[100])
    time: Duration | None = Field(None, description="The rows of the last so long.", examples=["5 s"])
    slide: Literal["each", "batch"] = Field("each", description="At every row, or when the window is full.")

    @model_validator(mode="after")
    def _rows_or_time(self) -> Self:
        only_one(self, ("rows", "time"))
        return self


class Query(DescribedPart):
    """A continuous query: SQL, one of EStream's own operators on another query, or Cayuga's language."""

    sql: Text | None = Field(
        None,
        description="A Spark SQL query over streams, tables and queries.",
        examples=["SELECT * FROM CarLocStr WHERE speed < 40"],
    )
    cel: Text | None = Field(None, description="A query in Cayuga's event language.")
    from_: Text | None = Field(None, alias="from", description="The stream or query to read.", examples=["CarSegStr"])
    modify: Modify | None = Field(None, description="A stream modifier.")
    window: Window | None = Field(None, description="A window for `select`, `unique` or `first_unique`.")
    where: Expression | None = Field(None, description="Keeps the rows for which it holds.", examples=["speed < -0.3"])
    unique: Columns | None = Field(
        None, min_length=1, description="Keeps the last row for each value of these columns."
    )
    first_unique: Columns | None = Field(
        None, min_length=1, description="Keeps the first row for each value of these columns."
    )
    partition_by: Columns = Field((), description="Each partition has windows of its own.", examples=[["symbol"]])
    group_by: Columns = Field((), description="Groups inside a window: what `select` is about.", examples=[["lane"]])
    select: dict[Name, Expression] = Field(
        {}, description="Output columns of a window: aggregates over it.", examples=[{"top": "max(price)"}]
    )
    having: Expression | None = Field(
        None, description="Keeps the windows for which it holds.", examples=["count() > 3"]
    )
    time: Text | None = Field(
        None, description="The time column of the output, if it is not the stream's.", examples=["ts"]
    )
    start: Text | None = Field(
        None, description="Sees rows from this time on.", examples=["2026-12-24T16:00:00Z", "in 10 minutes"]
    )
    stop: Text | None = Field(None, description="Sees rows before this time only.", examples=["2026-12-24T22:00:00Z"])
    missed: Literal["run_late", "skip"] = Field("run_late", description="What to do when the start time was missed.")
    publish: Name | None = Field(None, description="The channel its rows are published to.", examples=["rush"])

    @property
    def kind(self) -> QueryKind:
        """What computes the query; `where` alone is a filter, else it filters the result."""
        order: tuple[QueryKind, ...] = ("sql", "cel", "modify", "unique", "first_unique", "window")
        return next((kind for kind in order if getattr(self, kind) is not None), "where")

    @property
    def partition(self) -> Columns:
        """The columns that part its rows, wherever they are given."""
        return self.modify.partition_by if self.modify else self.partition_by

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        only_one(self, ("sql", "from_", "cel"))
        only_one(self, ("modify", "unique", "first_unique"), required=False)
        only_one(self, ("modify", "window"), required=False)
        operators = ("modify", "window", "where", "unique", "first_unique")
        given = [key for key in (*operators, "select", "having", "partition_by", "group_by") if getattr(self, key)]
        if self.from_ is None and given:
            raise PydanticCustomError("without_from", "'{key}' needs 'from'", {"key": given[0]})
        if self.from_ is not None and not any(getattr(self, key) for key in operators):
            raise PydanticCustomError("no_operator", "'from' needs one of {keys}", {"keys": ", ".join(operators)})
        self._select_fits_window()
        return self

    def _select_fits_window(self) -> None:
        selects = bool(self.select) or self.having is not None or bool(self.group_by)
        if selects and self.kind != "window":
            raise PydanticCustomError("select", "'select', 'group_by' and 'having' need 'window' without 'unique'")
        if self.unique and self.window and self.window.slide == "each":
            way = "'unique' with a window needs 'slide: batch': row by row, every row is the last of its values"
            raise PydanticCustomError("unique_each", way)
        if self.kind == "window" and not self.select:
            raise PydanticCustomError("no_select", "'window' needs 'select': what to compute over it")
        if self.modify and self.partition_by:
            raise PydanticCustomError("partition", "write 'partition_by' inside 'modify'")
