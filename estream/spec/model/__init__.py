"""The parts of a CEQ file as frozen models: what was written, with the place of every word."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from estream.scalar import Duration, resolve
from estream.settings import Settings
from estream.spec.model.event import (
    CompositeEvent,
    Event,
    PartitionBy,
    PatternEvent,
    PrimitiveEvent,
    RaisedEvent,
    TemporalEvent,
)
from estream.spec.model.part import Columns, Context, DescribedPart, EventName, Name, Part, Semantics
from estream.spec.model.query import Modify, Query, QueryKind, Source, Stream, Table, Window
from estream.spec.model.rule import (
    Action,
    Email,
    EmailAction,
    File,
    FileAction,
    LogAction,
    PublishAction,
    PythonAction,
    PythonCondition,
    Raise,
    RaiseAction,
    Retry,
    Rule,
    SqlAction,
    SqlInsert,
    Webhook,
    WebhookAction,
)
from estream.text import Text

SECTIONS = {"streams": "stream", "tables": "table", "queries": "query", "events": "event", "rules": "rule"}
"""The maps of named parts, and what one of their parts is called."""


class Ceq(DescribedPart):
    """A CEQ file with all it includes."""

    version: Annotated[Literal[1], BeforeValidator(resolve)] = Field(1, description="The version of the language.")
    name: Name = Field(
        Text("ceq"), description="What the file is known by; its file's name if not given.", examples=["car_adn"]
    )
    order: Literal["event_time", "arrival"] = Field(
        "event_time", description="Wait for late rows, or take them as they come."
    )
    settings: Settings = Field(Settings(), description="Settings that differ for this file.")
    include: Columns = Field((), description="Other CEQ files, relative to this one.", examples=[["streams.yaml"]])
    streams: dict[Name, Stream] = Field({}, description="Streams by name.")
    tables: dict[Name, Table] = Field({}, description="Static tables by name.")
    queries: dict[Name, Query] = Field({}, description="Continuous queries by name.")
    events: dict[EventName, Event] = Field({}, description="Events by name.")
    rules: dict[Name, Rule] = Field({}, description="Rules by name.")


__all__ = [
    "SECTIONS",
    "Action",
    "Ceq",
    "Columns",
    "CompositeEvent",
    "Context",
    "Duration",
    "Email",
    "EmailAction",
    "Event",
    "EventName",
    "File",
    "FileAction",
    "LogAction",
    "Modify",
    "Name",
    "Part",
    "PartitionBy",
    "PatternEvent",
    "PrimitiveEvent",
    "PublishAction",
    "PythonAction",
    "PythonCondition",
    "Query",
    "QueryKind",
    "Raise",
    "RaiseAction",
    "RaisedEvent",
    "Retry",
    "Rule",
    "Semantics",
    "Source",
    "SqlAction",
    "SqlInsert",
    "Stream",
    "Table",
    "TemporalEvent",
    "Webhook",
    "WebhookAction",
    "Window",
]
