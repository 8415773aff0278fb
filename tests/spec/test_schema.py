"""The JSON Schema is one, takes what the program takes, and refuses what an editor should mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from estream.scalar import resolve
from estream.spec.schema import json_schema
from estream.yaml import read_yaml

ROOT = Path(__file__).parent.parent.parent
RIGHT = sorted([*(ROOT / "ceq_specs").glob("*.yaml"), *(Path(__file__).parent / "testdata/right").glob("*.yaml")])
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def as_an_editor_sees(data: Any) -> Any:
    """YAML 1.2 as plain values."""
    if isinstance(data, dict):
        return {str(key): as_an_editor_sees(value) for key, value in data.items()}
    if isinstance(data, list):
        return [as_an_editor_sees(value) for value in data]
    meant = resolve(data)
    return str(meant) if isinstance(meant, str) else meant


def errors(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(as_an_editor_sees(read_yaml(text, "f.yaml").data))]


def test_it_is_a_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_files_are_right_in_an_editor(path: Path) -> None:
    assert errors(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "versoin: 1",
        "events: {E: {on: S, maks: a}}",
        "events: {E: {when: A, context: recnt}}",
        "events: {high-fever: {on: S}}",
        "rules: {R: {on: E, actions: []}}",
        "rules: {R: {on: E, actions: [{log: hi}], priority: high}}",
        "streams: {S: {source: {format: json}, schema: {ts: timestamp}}}",
        "queries: {Q: {from: S, window: {rows: 0}, select: {a: max(b)}}}",
    ],
)
def test_mistakes_are_marked_in_an_editor(text: str) -> None:
    assert errors(text)


@pytest.mark.parametrize(
    "text",
    [
        "rules: {R: {on: E, actions: [{log: hi}], priority: '${PRIORITY}'}}",
        "rules: {R: {on: E, actions: [webhook: {url_file: key}, webhook_file: key]}}",
        "events: {E: {on: S, mask: true}, F: {on: S, mask: 1 = 1, id: car}}",
    ],
)
def test_variables_and_files_are_right_in_an_editor(text: str) -> None:
    assert errors(text) == []


def test_everything_a_user_may_write_is_described() -> None:
    parts = {"": json_schema(), **json_schema()["$defs"]}
    lacking = [
        f"{title}.{name}"
        for title, part in parts.items()
        for name, found in part.get("properties", {}).items()
        if "description" not in found and "description" not in parts[found.get("$ref", "").rpartition("/")[2]]
    ]
    assert lacking == []
