"""Secrets kept in files: `password_file: path` stands for `password` with what the file holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from estream.content import read_content
from estream.errors import Problem
from estream.text import Mark, Text
from estream.yaml import Items, Map

SUFFIX = "_file"
_LARGEST = 65_536

ReadSecret: TypeAlias = Callable[[str], str]
"""Gives what a file holds; ValueError says why it cannot."""


def no_files(path: str) -> str:
    """Refuses every file: for text that comes from no folder."""
    raise ValueError("files are not read here")


def read_secret(folder: Path) -> ReadSecret:
    """Reads secrets, with relative paths from the folder."""

    def read(path: str) -> str:
        content = read_content(folder / path, _LARGEST)
        if len(content) > _LARGEST:
            raise ValueError(f"it has more than {_LARGEST:,} bytes")
        try:
            return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise ValueError("it is not UTF-8 text") from None

    return read


def read_secrets(part: Any, owner: str, secret: ReadSecret) -> tuple[Any, list[Problem]]:
    """The part with the secrets of its source's options and its actions' fields read from their files."""
    problems: list[Problem] = []
    if not isinstance(part, Map):
        return part, problems
    made = Map(part.place)
    made.update(part)
    source, actions = part.get(Text("source")), part.get(Text("actions"))
    if isinstance(source, Map) and isinstance(options := source.get(Text("options")), Map):
        made[Text("source")] = _with(source, "options", _fill(options, owner, secret, problems))
    if isinstance(actions, Items):
        filled = Items(actions.place)
        filled.extend(
            _fill(action, owner, secret, problems) if isinstance(action, Map) else action for action in actions
        )
        made[Text("actions")] = filled
    return made, problems


def _with(data: Map, key: str, value: Any) -> Map:
    made = Map(data.place)
    made.update({name: value if name == key else old for name, old in data.items()})
    return made


def _fill(data: Map, owner: str, secret: ReadSecret, problems: list[Problem]) -> Map:
    made = Map(data.place)
    for key, value in data.items():
        name = key.removesuffix(SUFFIX)
        if isinstance(value, Map):
            made[key] = _fill(value, owner, secret, problems)
        elif name in (key, "") or not isinstance(value, Text):
            made[key] = value
        elif name in data:
            problems.append(key.problem(f"{owner}: has both '{name}' and '{key}'; keep one"))
        else:
            made[Text(name, key.mark)] = _secret(key, value, owner, secret, problems)
    return made


def _secret(key: Text, path: Text, owner: str, secret: ReadSecret, problems: list[Problem]) -> Text:
    try:
        value = secret(path)
    except ValueError as error:
        problems.append(path.problem(f"{owner}: {key} is {path!r}: {error}"))
        return Text("unread", Mark(path.place))
    shown = f"<{path.shown}>"
    return Text(value, Mark(path.place), shown, ((value, shown), *path.hidden), plain=True)
