"""Settings: one frozen object from defaults, files and the environment.

Layers, the later over the earlier: the defaults here, the files in order, then variables `ESTREAM_SECTION__KEY`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import PydanticCustomError

from estream.content import read_content
from estream.errors import EStreamError, Place, Problem
from estream.scalar import Duration, Flag, Whole
from estream.suggest import suggestion
from estream.text import Mark, Text
from estream.validation import describe, validate
from estream.variables import expand
from estream.yaml import LARGEST, Map, read_yaml

PREFIX = "ESTREAM_"
FILES = ("config/default.yaml", "config/local.yaml")
"""Where a project keeps its settings; the later file goes over the earlier one."""

_MEMORY = re.compile(r"[1-9][0-9]*[kmgt]")


def _memory(text: Text) -> Text:
    if not _MEMORY.fullmatch(text):
        raise PydanticCustomError("memory", "memory is a number and k, m, g or t, like '2g'")
    return text


def bytes_of(memory: str) -> int:
    """How many bytes a text like `2g` is."""
    return int(memory[:-1]) << (10 * (1 + "kmgt".index(memory[-1])))


def _package(text: Text) -> Text:
    if not all(part.isidentifier() for part in text.removesuffix("/").split("/")):
        raise PydanticCustomError("package", "this is a folder inside the project, with names of Python packages")
    return text


class Section(BaseModel):
    """A group of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SparkSettings(Section):
    """The Spark session."""

    master: Text = Field(Text("local[*]"), description="Where Spark runs.", examples=["local[2]", "spark://host:7077"])
    memory: Annotated[Text, AfterValidator(_memory)] = Field(
        Text("2g"), description="Memory of the driver.", examples=["4g"]
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
    rules: Annotated[Text, AfterValidator(_package)] = Field(
        Text("rules"), description="Python callbacks: they come from here only."
    )


class RuleSettings(Section):
    """Rules that do not say otherwise."""

    workers: Whole = Field(4, ge=1, le=1024, description="Threads that run actions.")
    timeout: Duration = Field(Duration.of("30 s"), description="An action that takes longer has failed.")
    attempts: Whole = Field(5, ge=1, le=100, description="Attempts in all.")
    backoff: Duration = Field(Duration.of("1 s"), description="Wait before the second attempt; doubles each time.")
    queue: Whole = Field(10_000, ge=1, description="Detached firings that may wait.")
    cascade_depth: Whole = Field(16, ge=1, le=1000, description="How deep rules may raise events for rules.")
    allow_private: Flag = Field(False, description="Webhooks may call addresses of the private network.")
    memory: Annotated[Text, AfterValidator(_memory)] = Field(
        Text("4g"), description="Address space of an isolated callback.", examples=["1g"]
    )


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


def settings_files(root: Path) -> list[Path]:
    """The settings files that a project has, in the order they are layered."""
    return [root / file for file in FILES if (root / file).is_file()]


def load_settings(files: Iterable[Path], environment: Mapping[str, str]) -> Settings:
    """The settings that the files and the environment give; EStreamError tells everything that is wrong."""
    problems: list[Problem] = []
    merged = Map(Place("settings", 1, 1))
    for file in files:
        _merge(merged, _read(file, environment, problems))
    _merge(merged, _from_environment(environment, problems))
    settings, wrong = validate(TypeAdapter(Settings), Settings, merged, "settings")
    if settings is None or problems or wrong:
        raise EStreamError([*problems, *wrong])
    return settings


def _read(file: Path, environment: Mapping[str, str], problems: list[Problem]) -> Map:
    start = Place(str(file), 1, 1)
    try:
        content = read_content(file, LARGEST)
    except ValueError as error:
        problems.append(Problem(start, f"cannot read it: {error}"))
        return Map(start)
    document = read_yaml(content, str(file))
    if document.data is None and _only_comments(document.lines):
        return Map(start)
    problems += document.problems
    expanded = expand(document.data, environment)
    problems += expanded.problems
    if isinstance(expanded.data, Map):
        return expanded.data
    if expanded.data is not None:
        problems.append(Problem(expanded.data.place, f"the file is {describe(expanded.data)}, not a map"))
    return Map(start)


def _only_comments(lines: list[str]) -> bool:
    return all(not line.strip() or line.lstrip().startswith("#") for line in lines)


def _from_environment(environment: Mapping[str, str], problems: list[Problem]) -> Map:
    """Settings by variables; a variable with one underscore where two belong is told, others are not ours."""
    known = {f"{PREFIX}{section}__{key}".upper(): (section, key) for section, key in _settings_keys()}
    given = Map(Place("environment", 1, 1))
    for name, value in sorted(environment.items()):
        if not name.startswith(PREFIX):
            continue
        mark = Mark(Place(name, 1, 1, max(len(name), 1)))
        if name in known:
            section, key = (Text(word, mark) for word in known[name])
            given.setdefault(section, Map(mark.place))[key] = Text(
                value, mark, f"${{{name}}}", ((value, f"${{{name}}}"),), True
            )
        elif "__" in name or name in {right.replace("__", "_") for right in known}:
            problems.append(Problem(mark.place, f"there is no such setting; {suggestion(name, known)}"))
    return given


def _settings_keys() -> Iterable[tuple[str, str]]:
    for section, field in Settings.model_fields.items():
        model: Any = field.annotation
        yield from ((section, key) for key in model.model_fields if key != "conf")


def _merge(into: Map, over: Map) -> None:
    """Put the later settings over the earlier ones, key by key."""
    for key, value in over.items():
        old = into.get(key)
        if isinstance(old, Map) and isinstance(value, Map):
            _merge(old, value)
        elif isinstance(value, Map):
            # A copy: a later layer must not change what this one says.
            into[key] = Map(value.place)
            _merge(into[key], value)
        elif not (isinstance(value, Text) and value.is_nothing and isinstance(old, Map)):
            into[key] = value
