"""Events that rules raise or programs append: each lives in the channel of its name, which detection reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from estream.plan.model import Leaf
from estream.plan.need import RAISED_TIME
from estream.spec.type_text import parse_type
from estream.spec.types import DataType
from estream.stream.channel import Channel
from estream.stream.channel_schema import arrow_schema


def raised_channel(channels: Path, event: str, attributes: Mapping[str, DataType]) -> Channel:
    """The channel of a raised event, made if it is not there; a row gets the time of its append."""
    schema = arrow_schema({RAISED_TIME: parse_type("timestamp"), **attributes})
    return Channel(channels / event).create(schema, RAISED_TIME)


def channel_of(leaf: Leaf, channels: Path) -> Channel:
    """The channel that the occurrences of a leaf come from."""
    return raised_channel(channels, leaf.name, {column.name: column.type for column in leaf.columns})


def recorded(leaf: Leaf, channels: Path) -> pa.Table:
    """The occurrences of a raised event that are there."""
    channel = channel_of(leaf, channels)
    return pa.Table.from_batches((block.rows for block in channel.read(channel.first())), channel.schema)
