"""Rules and their actions, as written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from estream.scalar import Duration, Flag, Whole
from estream.spec.model.part import Columns, Context, DescribedPart, EventName, Expression, Name, Part, is_map
from estream.text import Text

_TEMPLATE = "Text with `{Event.attribute}` where values go."


class ActionFields(Part):
    """Fields of an action; any of them may be read from a file with `<field>_file`."""

    model_config = ConfigDict(json_schema_extra={"patternProperties": {"^.+_file$": {"type": "string"}}})


class File(ActionFields):
    """A file of JSON lines."""

    path: Text = Field(description="The file, which grows by one line a firing.", examples=["accidents.jsonl"])


class Webhook(ActionFields):
    """An HTTP request."""

    url: Text = Field(description="Where to.", examples=["https://example.org/hook", "${TOLL_STATION_URL}"])
    method: Literal["POST", "PUT", "PATCH"] = Field("POST", description="The request's method.")
    headers: dict[Text, Text] = Field({}, description="Headers of the request.")
    body: Text | None = Field(None, description=_TEMPLATE + " The whole detection as JSON if not given.")
    secret: Text | None = Field(None, description="Signs the request (HMAC-SHA256).", examples=["${HOOK_SECRET}"])
    timeout: Duration | None = Field(None, description="Gives up after so long.", examples=["5 s"])
    allow_private: Flag = Field(False, description="May call addresses of the private network.")


class Email(ActionFields):
    """A message by SMTP."""

    to: Columns = Field(min_length=1, description="Who gets it.", examples=[["police@example.org"]])
    sender: Text | None = Field(None, alias="from", description="Whom it is from.", examples=["estream@example.org"])
    subject: Text = Field(description=_TEMPLATE, examples=["Accident in {EImmobile.seg}"])
    body: Text | None = Field(None, description=_TEMPLATE)
    host: Text = Field(Text("localhost"), description="The SMTP server.")
    port: Whole = Field(25, ge=1, le=65535, description="Its port.")
    tls: Flag = Field(False, description="Speaks TLS (STARTTLS).")
    user: Text | None = Field(None, description="Name to log in with.")
    password: Text | None = Field(None, description="Password to log in with.", examples=["${SMTP_PASSWORD}"])


class SqlInsert(ActionFields):
    """A row inserted into a table of a database."""

    url: Text = Field(description="The database, as SQLAlchemy writes it.", examples=["${DATABASE_URL}"])
    table: Text = Field(description="The table.", examples=["accidents"])
    values: dict[Text, Expression] = Field(
        min_length=1, description="Columns and their values, templates.", examples=[{"car": "{EImmobile.car_id}"}]
    )


class Raise(ActionFields):
    """An event that the rule raises."""

    event: Text = Field(description="A raised event.", examples=["Closed"])
    attributes: dict[Name, Expression] = Field({}, description="Its attributes: expressions over the detection.")


class PythonAction(Part):
    """Calls a Python function."""

    python: Text = Field(
        description="module:function under the rules' folder.", examples=["rules.traffic:notify_police"]
    )
    isolate: Flag = Field(False, description="Runs it in a process of its own.")


class LogAction(Part):
    """Writes a line to the log."""

    log: Text = Field(description=_TEMPLATE, examples=["accident in segment {EImmobile.seg}"])
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The line's level.")


def _or_map(field: str, kind: type[ActionFields]) -> BeforeValidator:
    """Lets the one needed field stand for the whole map."""
    return BeforeValidator(
        lambda value: {field: value} if isinstance(value, str) else value, json_schema_input_type=str | kind
    )


class FileAction(Part):
    """Appends the detection to a file, as a line of JSON."""

    file: Annotated[File, _or_map("path", File)] = Field(description="The file.", examples=["accidents.jsonl"])


class WebhookAction(Part):
    """Calls a URL."""

    webhook: Annotated[Webhook, _or_map("url", Webhook)] = Field(
        description="The request.", examples=["https://example.org/hook"]
    )


class EmailAction(Part):
    """Sends a message."""

    email: Email = Field(description="The message.")


class SqlAction(Part):
    """Inserts a row into a database."""

    sql: SqlInsert = Field(description="The row.")


class PublishAction(Part):
    """Appends the detection to a channel."""

    publish: Name = Field(description="The channel.", examples=["accidents"])


class RaiseAction(Part):
    """Raises an event."""

    raise_: Raise = Field(alias="raise", description="The event.")


ACTIONS = ("python", "log", "file", "webhook", "email", "sql", "publish", "raise")
"""The key that says what an action does."""


def _action(value: Any) -> str | None:
    if isinstance(value, BaseModel):
        return type(value).__name__.removesuffix("Action").lower()
    return next((key for key in ACTIONS if key in value), None) if isinstance(value, Mapping) else None


Action: TypeAlias = Annotated[
    Annotated[PythonAction, Tag("python")]
    | Annotated[LogAction, Tag("log")]
    | Annotated[FileAction, Tag("file")]
    | Annotated[WebhookAction, Tag("webhook")]
    | Annotated[EmailAction, Tag("email")]
    | Annotated[SqlAction, Tag("sql")]
    | Annotated[PublishAction, Tag("publish")]
    | Annotated[RaiseAction, Tag("raise")],
    Discriminator(_action),
]
"""An action of any kind; its key tells which."""


class PythonCondition(Part):
    """A condition that a Python function decides."""

    python: Text = Field(
        description="module:function under the rules' folder.", examples=["rules.traffic:same_segment"]
    )


Condition: TypeAlias = Annotated[
    Annotated[Expression, Tag("plain")] | Annotated[PythonCondition, Tag("map")], Discriminator(is_map)
]
"""An expression, or a Python function."""


class Retry(Part):
    """How often a failed action is tried again."""

    attempts: Whole = Field(5, ge=1, le=100, description="Attempts in all.")
    backoff: Duration | None = Field(
        None, description="Wait before the second attempt; doubles each time.", examples=["1 s"]
    )


class Rule(DescribedPart):
    """A rule: on an event, if the condition holds, do the actions."""

    on: EventName = Field(description="The event that fires it.", examples=["EAccident"])
    context: Context | None = Field(None, description="Detect the event in this context for the rule.")
    condition: Condition | None = Field(
        None,
        description="What must hold of the detection.",
        examples=["EDecrease.ts - EImmobile.ts < INTERVAL 10 MINUTES"],
    )
    actions: tuple[Action, ...] = Field(min_length=1, description="What is done, one after the other.")
    priority: Whole = Field(
        1, ge=-(2**31), le=2**31 - 1, description="Higher first; equal priorities together.", examples=[10]
    )
    coupling: Literal["immediate", "deferred", "detached"] = Field(
        "immediate", description="Before the next detection, at the end of the micro-batch, or on its own."
    )
    throttle: Duration | None = Field(
        None, description="At most one firing per partition in this time.", examples=["5 minutes"]
    )
    retry: Retry = Field(Retry(attempts=5, backoff=None), description="How often a failed action is tried again.")
    timeout: Duration | None = Field(None, description="An action that takes longer has failed.", examples=["30 s"])
    enabled: Flag = Field(True, description="A rule that is not enabled fires nothing.")
    tags: Columns = Field((), description="Words to find the rule by.", examples=[["traffic"]])
