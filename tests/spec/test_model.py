"""Models keep what was written, with its place, and editors get their schema."""

from __future__ import annotations

from typing import Any

import pytest

from estream.spec.model import Ceq, CompositeEvent, Duration, Query
from estream.spec.schema import json_schema
from estream.text import Text


def test_words_keep_their_places_through_validation() -> None:
    text = Text("A ; B")
    assert CompositeEvent.model_validate({"when": text}).when is text


def test_durations_are_text_and_length() -> None:
    event = CompositeEvent.model_validate({"when": "A", "within": "5 min"})
    assert isinstance(event.within, Duration)
    assert (event.within, event.within.microseconds) == ("5 min", 300_000_000)


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ({"sql": "SELECT 1"}, "sql"),
        ({"from": "S", "where": "a > 1"}, "where"),
        ({"from": "S", "unique": "a", "where": "a > 1"}, "unique"),
        ({"from": "S", "window": {"rows": 3}, "select": {"n": "count()"}}, "window"),
        ({"from": "S", "modify": {"function": "adiff", "attributes": "a"}}, "modify"),
    ],
)
def test_kind_of_a_query_follows_from_its_keys(query: dict[str, Any], kind: str) -> None:
    assert Query.model_validate(query).kind == kind


def test_schema_describes_every_key() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for name, part in schema["$defs"].items():
        for key, value in part.get("properties", {}).items():
            described = schema["$defs"].get(value.get("$ref", "").removeprefix("#/$defs/"), {}) | value
            assert "description" in described, f"{name}.{key}"


def test_schema_refers_only_to_what_it_defines() -> None:
    schema = json_schema()

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [found for inner in value.values() for found in references(inner)]
        return [found for inner in value for found in references(inner)] if isinstance(value, list) else []

    assert {name.removeprefix("#/$defs/") for name in references(schema)} <= set(schema["$defs"])


def test_secrets_are_not_dumped() -> None:
    secret = Text("hunter2", shown="${PW}", hidden=(("hunter2", "${PW}"),))
    stream = {"source": {"format": "x", "options": {"password": secret}}, "schema": {"ts": "timestamp"}, "time": "ts"}
    ceq = Ceq.model_validate({"streams": {"S": stream}})
    assert "hunter2" not in repr(ceq) + str(ceq.model_dump()) + ceq.model_dump_json()
    assert ceq.streams[Text("S")].source.options[Text("password")] == "hunter2"
