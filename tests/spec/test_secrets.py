"""What the environment holds is shown by its name only, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from estream.app import load
from estream.plan.explain import explain
from estream.text import Text
from estream.yaml import read_yaml

DATA = Path(__file__).parent / "testdata"
WRONG = sorted((DATA / "wrong").rglob("*.yaml"))
RIGHT = sorted((DATA / "right").glob("*.yaml"))
NO_SECRETS = ("cron", "within", "every", "watermark", "idle_after", "max_ahead")
"""Schedules and durations shape the plan and are shown with it."""


def scalars(data: Any) -> Iterator[Text]:
    """Texts of several words that stand on one line as they are: expressions, SQL, templates, paths."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from () if key in NO_SECRETS else scalars(value)
    elif isinstance(data, list):
        for value in data:
            yield from scalars(value)
    elif isinstance(data, Text) and " " in data and len(data.mark.lines) == 1:
        yield data


def from_environment(text: str, scalar: Text) -> str:
    """The file with the scalar's value in the environment."""
    lines = text.split("\n")
    line, start = lines[scalar.place.line - 1], scalar.place.column - 1
    quotes = 2 if line[start] in "'\"" else 0
    lines[scalar.place.line - 1] = f'{line[:start]}"${{SECRET}}"{line[start + len(scalar) + quotes :]}'
    return "\n".join(lines)


@pytest.mark.parametrize("path", [*WRONG, *RIGHT], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_message_and_no_plan_shows_a_value_of_the_environment(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    for scalar in scalars(read_yaml(text, "f.yaml").data):
        changed = from_environment(text, scalar)
        if scalar in changed:
            continue
        (tmp_path / "f.yaml").write_text(changed)
        loaded = load(tmp_path / "f.yaml", {"SECRET": str(scalar)}, tmp_path)
        assert [str(problem) for problem in loaded.problems if scalar in str(problem)] == []
        if loaded.plan is not None:
            assert scalar not in explain(loaded.plan, "text", None) + explain(loaded.plan, "json", None)


def test_a_number_of_the_environment_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(
        "rules: {R: {on: E, priority: '${A}', retry: {attempts: '${B}'}, timeout: '${C}', actions: [{log: a}]}}\n"
        "settings: {detection: {shards: '${D}'}, rules: {allow_private: '${E}'}}\n"
    )
    secrets = {"A": "98765432109876", "B": "98765", "C": "98765", "D": "9876.5", "E": "98765"}
    told = [str(problem) for problem in load(tmp_path / "f.yaml", secrets, tmp_path).problems]
    assert len(told) == 5
    assert "98765" not in " ".join(told)


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside.yaml", "link.yaml", "folder/../../outside.yaml", "folder"])
def test_an_include_stays_inside_the_project(tmp_path: Path, path: str) -> None:
    root = tmp_path / "project"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "outside.yaml").write_text("name: hunter2")
    (root / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (root / "f.yaml").write_text(f"include: {path}\n")
    told = [problem.message for problem in load(root / "f.yaml", {}, root).problems]
    assert told in ([f"include '{path}' is outside the project's folder"], [f"include '{path}': there is no such file"])


def test_an_include_named_by_the_environment_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text("include: '${SECRET}'\n")
    told = [str(problem) for problem in load(tmp_path / "f.yaml", {"SECRET": "hunter2"}, tmp_path).problems]
    assert len(told) == 1
    assert "hunter2" not in told[0]
