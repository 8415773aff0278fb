"""YAML as EStream reads it: located, without surprises, and safe to read from anyone.

Scalars are `Text` and keep their place; `on`, `yes` and times are plain text (YAML 1.2). Tags, merge keys and duplicate
keys are refused. Nothing recurses and nothing is expanded before it is counted, so bombs are refused at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import yaml

from estream.errors import Place, Problem
from estream.text import Mark, Text

LARGEST = 1_000_000
DEEPEST = 64
MOST_NODES = 100_000

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_BREAK = re.compile("\r\n|\r|\n")
_CORE = "tag:yaml.org,2002:"
_TAGS = {"scalar": ("str", "int", "float", "bool", "null"), "map": ("map",), "list": ("seq",)}
_ADVICE = {
    "cannot start any token": (
        "a character that cannot begin a value; put the value in quotes, and indent with spaces, not tabs"
    ),
    "mapping values are not allowed": "':' cannot stand here; put the text in quotes, or the key on a line of its own",
}
"""What helps more than the parser's own words, by what they contain."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Map(dict[Text, Any]):
    """A YAML mapping that knows where it begins; its keys know where they stand."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self._keys: dict[object, Text] = {}

    def key(self, name: object) -> Text | None:
        """The key as written, with its place."""
        # Made when a message first needs it: most maps are right.
        if len(self._keys) != len(self):
            self._keys = {key: key for key in self}
        return self._keys.get(name)


class Items(list[Any]):
    """A YAML sequence that knows where it begins."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place


Data: TypeAlias = Text | Map | Items


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says; `data` is None where it could not be read."""

    data: Data | None
    problems: tuple[Problem, ...]
    lines: list[str]


def read_yaml(content: str | bytes, file: str) -> Document:
    """The one document of a YAML text, with every problem at its place."""
    text, problem = _decode(content, file)
    lines = _LINE_BREAK.split(text)
    if problem is not None:
        return Document(None, (problem,), lines)
    composer = _Composer(file, lines)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            composer.take(event)
    except _Refused as refused:
        return Document(None, (*composer.problems, refused.problem), lines)
    except yaml.MarkedYAMLError as error:
        return Document(None, (*composer.problems, _not_yaml(error, lines, file)), lines)
    except yaml.YAMLError:
        return Document(None, (*composer.problems, Problem(Place(file, 1, 1), "this is not YAML text")), lines)
    if composer.root is None and not composer.problems:
        return Document(None, (Problem(Place(file, 1, 1), "the file is empty"),), lines)
    return Document(composer.root, tuple(composer.problems), lines)


def _decode(content: str | bytes, file: str) -> tuple[str, Problem | None]:
    """The text, and what keeps it from being YAML: size, encoding, control characters."""
    if len(content) > LARGEST:
        return "", Problem(Place(file, 1, 1), f"the file has more than {LARGEST:,} bytes; split it with 'include'")
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")
        return before, Problem(_place_of(len(before), before, file), "this byte is not UTF-8; save the file as UTF-8")
    text = text.removeprefix("\ufeff")
    found = _FORBIDDEN.search(text)
    if found:
        message = f"the character U+{ord(found[0]):04X} may not stand in a file; remove it"
        return text, Problem(_place_of(found.start(), text, file), message)
    return text, None


def _place_of(offset: int, text: str, file: str) -> Place:
    before = _LINE_BREAK.split(text[:offset])
    return Place(file, len(before), len(before[-1]) + 1)


def _place_at(line: int, column: int, lines: list[str], file: str) -> Place:
    """A parser's mark as a place; the end of the text, which the parser may put on a line of its own, is its last."""
    if line < len(lines):
        return Place(file, line + 1, column + 1)
    return Place(file, len(lines), len(lines[-1]) + 1)


def _not_yaml(error: yaml.MarkedYAMLError, lines: list[str], file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    place = _place_at(mark.line, mark.column, lines, file) if mark else Place(file, 1, 1)
    words = str(error.problem or error.context or "it cannot be read")
    context = f" {error.context}" if error.problem and error.context else ""
    for sign, advice in _ADVICE.items():
        if sign in words:
            words, context = advice, ""
    return Problem(place, f"not YAML{context}: {words}")


class _Refused(Exception):
    """Reading cannot go on after this problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(slots=True)
class _Anchor:
    """A node that may be named again: its size and height once it is whole."""

    data: Data
    nodes: int = 0
    height: int = 0
    whole: bool = False


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    data: Map | Items
    anchor: str | None
    nodes_before: int
    key: Text | None = None
    skips_value: bool = False
    height: int = 0
    keys: dict[str, Text] = field(default_factory=dict)


@dataclass(slots=True)
class _Composer:
    """Builds the data from parser events, with its own stack."""

    file: str
    lines: list[str]
    root: Data | None = None
    problems: list[Problem] = field(default_factory=list)
    _open: list[_Open] = field(default_factory=list)
    _anchors: dict[str, _Anchor] = field(default_factory=dict)
    _nodes: int = 0
    _documents: int = 0

    def take(self, event: Any) -> None:
        """Take the parser's next event."""
        match event:
            case yaml.ScalarEvent():
                self._check_tag(event, "scalar")
                self._count(1, event)
                self._leaf(self._text(event), event)
            case yaml.AliasEvent():
                self._alias(event)
            case yaml.MappingStartEvent():
                self._begin(Map(self._place(event)), event, "map")
            case yaml.SequenceStartEvent():
                self._begin(Items(self._place(event)), event, "list")
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._end()
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise self._refused(event, "a second document begins here; a file has one")

    def _leaf(self, text: Text, event: Any) -> None:
        if event.anchor:
            self._anchors[event.anchor] = _Anchor(text, 1, 0, True)
        self._add(text, 0, event)

    def _alias(self, event: Any) -> None:
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise self._refused(event, f"there is no anchor '&{event.anchor}' before this alias")
        if not anchor.whole:
            raise self._refused(event, f"'*{event.anchor}' contains itself")
        self._count(anchor.nodes, event)
        if len(self._open) + anchor.height > DEEPEST:
            raise self._refused(event, f"nested more than {DEEPEST} deep")
        self._add(anchor.data, anchor.height, event)

    def _begin(self, data: Map | Items, event: Any, kind: str) -> None:
        self._check_tag(event, kind)
        if len(self._open) >= DEEPEST:
            raise self._refused(event, f"nested more than {DEEPEST} deep")
        if self._open and isinstance(self._open[-1].data, Map) and self._open[-1].key is None:
            raise self._refused(event, f"a {kind} cannot be a key; write a name")
        before = self._nodes
        self._count(1, event)
        if event.anchor:
            self._anchors[event.anchor] = _Anchor(data)
        self._open.append(_Open(data, event.anchor, before))

    def _end(self) -> None:
        closed = self._open.pop()
        height = closed.height + 1
        anchor = self._anchors.get(closed.anchor) if closed.anchor else None
        if anchor is not None and anchor.data is closed.data:
            anchor.nodes, anchor.height, anchor.whole = self._nodes - closed.nodes_before, height, True
        self._add(closed.data, height, None)

    def _add(self, data: Data, height: int, event: Any) -> None:
        if not self._open:
            self.root = data
            return
        parent = self._open[-1]
        parent.height = max(parent.height, height)
        if isinstance(parent.data, Items):
            parent.data.append(data)
        elif parent.key is None:
            self._add_key(parent, data, event)
        else:
            if not parent.skips_value:
                parent.data[parent.key] = data
            parent.key, parent.skips_value = None, False

    def _add_key(self, parent: _Open, key: Data, event: Any) -> None:
        if not isinstance(key, Text):
            raise self._refused(event, "a key must be a name")
        parent.key = key
        other = parent.keys.setdefault(key, key)
        if key == "<<" and key.plain:
            self.problems.append(
                key.problem("merge keys '<<' are not read; write the keys out, or alias the whole value")
            )
            parent.skips_value = True
        elif other is not key:
            at = f"line {other.place.line}, column {other.place.column}"
            self.problems.append(key.problem(f"the key {key!r} is here twice; the first is in {at}"))
            parent.skips_value = True

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > MOST_NODES:
            raise self._refused(event, f"more than {MOST_NODES:,} values, counting what aliases repeat")

    def _check_tag(self, event: Any, kind: str) -> None:
        tag = event.tag
        if tag is None or tag == "!" or tag in (_CORE + name for name in _TAGS[kind]):
            return
        written = "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag
        raise self._refused(event, f"the tag {written[:60]!r} is not read; write the value without it")

    def _refused(self, event: Any, message: str) -> _Refused:
        return _Refused(Problem(self._place(event), message))

    def _place(self, event: Any) -> Place:
        start, end = event.start_mark, event.end_mark
        place = _place_at(start.line, start.column, self.lines, self.file)
        stop = end.column if end.line == start.line else len(self.lines[place.line - 1])
        return replace(place, length=max(stop - start.column, 1))

    def _text(self, event: Any) -> Text:
        written_plain = event.style in (None, "") or (event.tag or "").startswith(_CORE)
        plain = written_plain and event.tag not in (_CORE + "str", "!")
        return Text(event.value, Mark(self._place(event), tuple(self._value_lines(event))), plain=plain)

    def _value_lines(self, event: Any) -> Iterator[tuple[int, int]]:
        """Where each line of the value begins, if the file has it letter by letter."""
        start, end, value = event.start_mark, event.end_mark, event.value
        if event.style == "|":
            yield from self._literal_lines(start.line + 1, value)
        elif start.line == end.line < len(self.lines):
            written = self.lines[start.line][start.column : end.column]
            quote = 1 if event.style in ("'", '"') else 0
            if written[quote : len(written) - quote] == value:
                yield start.line + 1, start.column + 1 + quote

    def _literal_lines(self, first: int, value: str) -> list[tuple[int, int]]:
        rows = value.rstrip("\n").split("\n")
        written = self.lines[first : first + len(rows)]
        filled = [(line, row) for line, row in zip(written, rows, strict=False) if row]
        indent = len(filled[0][0]) - len(filled[0][1]) if filled else 0
        if len(written) < len(rows) or any(line[indent:] != row for line, row in filled):
            return []
        return [(first + number + 1, indent + 1) for number in range(value.count("\n") + 1)]
