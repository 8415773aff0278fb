"""Events of all kinds, as written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BaseModel, Discriminator, Field, Tag, model_validator

from estream.scalar import Duration
from estream.spec.model.part import (
    Columns,
    Context,
    DescribedPart,
    EventName,
    Expression,
    Name,
    Semantics,
    is_map,
    only_one,
)
from estream.text import Text

PartitionBy: TypeAlias = Annotated[
    Annotated[Columns, Tag("plain")] | Annotated[dict[EventName, Columns], Tag("map")], Discriminator(is_map)
]
"""Attributes that all leaves have, or for each leaf (or named event) its own."""

_MASK = "Only what it holds of takes part."
_PARTITION = "Each partition is detected by itself."


class PublishedPart(DescribedPart):
    """An event, which may be published."""

    publish: Name | None = Field(
        None, description="The channel its detections are published to.", examples=["accidents"]
    )


class PrimitiveEvent(PublishedPart):
    """A primitive event: the rows of a query that the mask lets through."""

    on: Text = Field(description="The stream or query whose rows raise it.", examples=["Immobile"])
    mask: Expression | None = Field(None, description=_MASK, examples=["lane = 0"])
    id: Columns | None = Field(
        None, min_length=1, description="Columns a row is known by; else all of them.", examples=[["order_id"]]
    )


class PatternEvent(PublishedPart):
    """A pattern event: a regular expression over the rows of a query."""

    on: Text = Field(description="The stream or query whose rows are matched.", examples=["Quotes"])
    pattern: Text = Field(description="A regular expression over predicates.", examples=[". rise+ drop+ deep"])
    define: dict[Name, Expression] = Field(
        {}, description="Each predicate as a condition on a row.", examples=[{"rise": "price > last(price)"}]
    )
    output: dict[Name, Expression] = Field(
        {}, description="Attributes of a match.", examples=[{"since": "first(ts)", "top": "max(price)"}]
    )
    partition_by: Columns = Field((), description=_PARTITION, examples=["symbol"])
    within: Duration | None = Field(None, description="The longest time a match may take.", examples=["1 hour"])
    skip: Literal["past_last", "overlap"] = Field("past_last", description="Where the search goes on after a match.")
    id: Columns | None = Field(None, min_length=1, description="Columns a row is known by; else all of them.")


class CompositeEvent(PublishedPart):
    """A composite event: an expression over other events."""

    when: Text = Field(
        description="An event expression.", examples=["EImmobile ; EDecrease", "not(Paid)[Ordered, Shipped]"]
    )
    context: Context | None = Field(None, description="Which occurrences are combined; `recent` if not given.")
    partition_by: PartitionBy = Field((), description=_PARTITION, examples=[["exp_way", "dir", "seg"]])
    within: Duration | None = Field(
        None, description="The longest time an occurrence may take.", examples=["20 minutes"]
    )
    semantics: Semantics | None = Field(None, description="What `before` means; `interval` if not given.")
    mask: Expression | None = Field(None, description=_MASK, examples=["EImmobile.car_id <> EDecrease.car_id"])


class TemporalEvent(PublishedPart):
    """A temporal event: a time, or times again and again."""

    ONE_OF: ClassVar[tuple[str, ...]] = ("at", "every", "cron")

    at: Text | None = Field(None, description="A timestamp.", examples=["2026-12-24T16:00:00Z"])
    every: Duration | None = Field(None, description="Multiples of this time since the epoch.", examples=["5 min"])
    cron: Text | None = Field(None, description="Minute, hour, day, month, weekday.", examples=["0 9 * * MON-FRI"])
    timezone: Text | None = Field(None, description="Of `cron`; UTC if not given.", examples=["Europe/Zurich"])

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        only_one(self, self.ONE_OF)
        return self


class RaisedEvent(PublishedPart):
    """A raised event: rules and the service raise it, with these attributes."""

    raised: dict[Name, Text] = Field(description="Attributes and their types.", examples=[{"car_id": "bigint"}])


KINDS = {"when": "composite", "pattern": "pattern", "raised": "raised", "at": "temporal", "every": "temporal",
         "cron": "temporal", "on": "primitive"}  # fmt: skip
"""Which key makes an event of which kind; the first that is there decides."""


def _kind(value: Any) -> str | None:
    if isinstance(value, BaseModel):
        return type(value).__name__.removesuffix("Event").lower()
    return next((kind for key, kind in KINDS.items() if key in value), None) if isinstance(value, Mapping) else None


Event: TypeAlias = Annotated[
    Annotated[PrimitiveEvent, Tag("primitive")]
    | Annotated[PatternEvent, Tag("pattern")]
    | Annotated[CompositeEvent, Tag("composite")]
    | Annotated[TemporalEvent, Tag("temporal")]
    | Annotated[RaisedEvent, Tag("raised")],
    Discriminator(_kind),
]
"""An event of any kind; its keys tell which."""
