"""Texts of actions: `{Event.attribute}` is replaced by a value of the detection, and nothing is ever run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from estream.rule.detection import Detected
from estream.rule.values import plain

_PLACEHOLDER: Final = re.compile(r"\{\{|\}\}|\{\s*(?:(\w+)\.)?(\w+)\s*\}")
_IN_JSON: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\{\s*(\w+)\.(\w+)\s*\}')
_VALUE: Final = re.compile(r"\{\s*(\w+)\.(\w+)\s*\}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_UNSAFE: Final = re.compile(r"[^\w.-]+|\.{2,}|^\.")


def lookup(detected: Detected, event: str | None, name: str) -> Any:
    """The value that `{event.name}` stands for: of the last occurrence of the leaf, null if there is none."""
    if event in (None, detected.event) and name in ("tick", "ticks"):
        return detected.tick if name == "tick" else list(detected.ticks or ())
    found = detected.last(event or "")
    if found is None:
        return None
    if name in found.attributes:
        return found.attributes[name]
    return next((value for key, value in found.attributes.items() if key.lower() == name.lower()), None)


def as_text(value: Any) -> str:
    """The value for people."""
    shown = plain(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def in_line(value: Any) -> str:
    """The value for a header or a subject: it cannot begin a new line."""
    return _CONTROL.sub(" ", as_text(value))


def in_path(value: Any) -> str:
    """The value for a part of a path: it cannot leave its folder."""
    return _UNSAFE.sub("_", as_text(value))


def in_url(value: Any) -> str:
    """The value for a part of a URL."""
    return quote(as_text(value), safe="")


def fill(template: str, detected: Detected, form: Callable[[Any], str] = as_text) -> str:
    """The template with the detection's values; `{{` and `}}` are the braces themselves."""

    def put(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0][0]
        return form(lookup(detected, found[1], found[2]))

    return _PLACEHOLDER.sub(put, template)


def fill_json(template: str, detected: Detected) -> str:
    """A template that is JSON: a value alone becomes JSON, one inside a string becomes text that cannot end it."""

    def inside(found: re.Match[str]) -> str:
        return json.dumps(as_text(lookup(detected, found[1], found[2])), ensure_ascii=False)[1:-1]

    def put(found: re.Match[str]) -> str:
        if found[1] is None:
            return _VALUE.sub(inside, found[0])
        return json.dumps(plain(lookup(detected, found[1], found[2])), ensure_ascii=False)

    return _IN_JSON.sub(put, template)


def is_json(template: str) -> bool:
    """Whether a body is JSON once values stand in it."""
    if not template.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(_IN_JSON.sub(lambda found: found[0] if found[1] is None else "0", template))
    except ValueError:
        return False
    return True
