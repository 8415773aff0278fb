"""The JSON Schema of CEQ files, for completion and checks in editors."""

from __future__ import annotations

from typing import Any

from estream.spec.model import Ceq

_HAS_FILES = {"patternProperties": {"^.+_file$": {"type": "string", "description": "Read the value from this file."}}}


def json_schema() -> dict[str, Any]:
    """The schema (draft 2020-12), with descriptions and examples."""
    schema = Ceq.model_json_schema(by_alias=True)
    for definition in schema.get("$defs", {}).values():
        if "patternProperties" in definition:
            definition.update(_HAS_FILES)
            # A field may come from a file, so that only the program can tell whether it is there.
            definition.pop("required", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "CEQ file",
        "description": "Streams, continuous queries, events and rules of EStream.",
    }
