"""Settings: one frozen object from defaults, files and the environment.

Layers, the later over the earlier: the defaults here, the files in order, then variables `ESTREAM_SECTION__KEY`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from estream.scalar import Duration, Flag, Whole
from estream.text import Text


class Section(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SparkSettings(Section):
    """The Spark session."""

    master: Text = Field(Text("local[*]"), description="Where Spark runs.", examples=["local[2]", "spark://host:7077"])
    memory: Text = Field(
        Text("2g"), pattern=r"^[1-9][0-9]*[kmgt]$", description="Memory of the driver.", examples=["4g"]
    )
    conf: dict[Text, Text] = Field({}, description="More configuration of Spark, by its own keys.")


class StreamSettings(Section):
    """Streams that do not say otherwise."""

    watermark: Duration = Field(Duration.of("10 s"), description="How late a row may come.")
    idle_after: Duration = Field(Duration.of("30 s"), description="A stream silent for so long holds nobody up.")
    max_ahead: Duration = Field(Duration.of("1 h"), description="A row further ahead of the clock is refused.")
    trigger: Duration = Field(Duration.of("500 ms"), description="Time between micro-batches.")


class DetectionSettings(Section):
    """The event detection core."""

    shards: Whole = Field(2, ge=1, le=4096, description="Parts of the state; fixed once a checkpoint is made.")


class PathSettings(Section):
    """Folders, relative to the project's."""

    state: Text = Field(Text(".estream"), description="What a running service keeps.")
    checkpoints: Text = Field(Text(".estream/checkpoints"), description="Spark's checkpoints.")
    channels: Text = Field(Text(".estream/channels"), description="Channels between queries.")
    cache: Text = Field(Text(".estream/cache"), description="Compiled detection kernels.")
    rules: Text = Field(Text("rules"), description="Python callbacks: they come from here only.")


class RuleSettings(Section):
    """Rules that do not say otherwise."""

    workers: Whole = Field(4, ge=1, le=1024, description="Threads that run actions.")
    timeout: Duration = Field(Duration.of("30 s"), description="An action that takes longer has failed.")
    attempts: Whole = Field(5, ge=1, le=100, description="Attempts in all.")
    backoff: Duration = Field(Duration.of("1 s"), description="Wait before the second attempt; doubles each time.")
    queue: Whole = Field(10_000, ge=1, description="Detached firings that may wait.")
    cascade_depth: Whole = Field(16, ge=1, le=1000, description="How deep rules may raise events for rules.")
    allow_private: Flag = Field(False, description="Webhooks may call addresses of the private network.")


class HistorySettings(Section):
    """The record of detections and firings."""

    url: Text = Field(Text("sqlite:///.estream/history.db"), description="The database, as SQLAlchemy writes it.")
    keep: Duration = Field(Duration.of("90 days"), description="Older records are pruned.")


class LogSettings(Section):
    """What the program says of its work."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least level that is logged.")
    format: Literal["text", "json"] = Field("text", description="Lines for people, or for programs.")


class Settings(Section):
    """Every setting."""

    spark: SparkSettings = Field(SparkSettings(), description="The Spark session.")
    stream: StreamSettings = Field(StreamSettings(), description="Streams that do not say otherwise.")
    detection: DetectionSettings = Field(DetectionSettings(), description="The event detection core.")
    paths: PathSettings = Field(PathSettings(), description="Folders, relative to the project's.")
    rules: RuleSettings = Field(RuleSettings(), description="Rules that do not say otherwise.")
    history: HistorySettings = Field(HistorySettings(), description="The record of detections and firings.")
    log: LogSettings = Field(LogSettings(), description="What the program says of its work.")
