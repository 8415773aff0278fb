"""The JSON Schema of CEQ files, for completion and checks in editors."""

from __future__ import annotations

from typing import Any

from estream.spec.model import Ceq
from estream.spec.model.rule import ACTIONS
from estream.spec.secrets import SUFFIX

_FROM_FILE = {"type": "string", "description": "Read the value from this file."}


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12), with descriptions and examples."""
    schema = Ceq.model_json_schema(by_alias=True)
    for name, definition in schema["$defs"].items():
        if "patternProperties" in definition:
            definition["patternProperties"] = {f"^.+{SUFFIX}$": _FROM_FILE}
            # A field may come from a file, so that only the program can tell whether it is there.
            definition.pop("required", None)
        if name.endswith("Action"):
            _let_come_from_file(definition)
        _close(definition)
    _close(schema)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "CEQ file",
        "description": "Streams, continuous queries, events and rules of EStream.",
    }


def _let_come_from_file(action: dict[str, Any]) -> None:
    """The one key that says what an action does may name a file that holds its value."""
    (key,) = (name for name in action["properties"] if name in ACTIONS)
    del action["required"]
    action["properties"][key + SUFFIX] = _FROM_FILE
    action["oneOf"] = [{"required": [key]}, {"required": [key + SUFFIX]}]


def _close(definition: dict[str, Any]) -> None:
    """Let editors mark keys that are no names: a map of parts has keys of the one pattern only."""
    for found in definition.get("properties", {}).values():
        if "patternProperties" in found:
            found["additionalProperties"] = False
