"""What the environment holds is shown by its name only, whatever is wrong with it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from estream.app import load
from estream.hidden import HiddenNumber, shown_number
from estream.plan.explain import explain
from estream.text import Text
from estream.yaml import read_yaml

DATA = Path(__file__).parent / "testdata"
WRONG = sorted((DATA / "wrong").rglob("*.yaml"))
RIGHT = sorted((DATA / "right").glob("*.yaml"))
SHOWN_ANYWAY = ("10 s", "30 s")
"""The defaults of watermarks and idle sources, which a plan shows of other streams."""


def scalars(data: Any) -> Iterator[Text]:
    """Texts of several words that stand on one line as they are: expressions, SQL, templates, paths."""
    if isinstance(data, dict):
        for value in data.values():
            yield from scalars(value)
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
        if scalar in changed or scalar in SHOWN_ANYWAY:
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


NUMBERS = """\
streams:
  V: {source: {format: rate}, schema: {ts: timestamp, n: int}, time: ts, watermark: "${LENGTH}"}
queries:
  Q: {from: V, window: {rows: "${COUNT}"}, select: {m: avg(n), ts: window.end}}
events:
  A: {on: Q}
  B: {every: "${LENGTH}"}
  C: {cron: "${CRON}"}
  D: {at: "${AT}"}
  E: {when: "times(${COUNT}, A) ; B + ${LENGTH}", within: "${LENGTH}"}
  F: {when: "C ; D ; P", within: "${LENGTH}"}
  P: {on: Q, pattern: x y, define: {x: m > 1, y: m < 1}, within: "${LENGTH}"}
rules:
  R: {on: E, priority: "${COUNT}", actions: [{log: a}]}
  S: {on: F, actions: [{log: a}]}
"""


@pytest.mark.parametrize("format", ["text", "json", "dot", "mermaid"])
def test_a_plan_shows_the_variables_that_numbers_and_times_came_from(
    tmp_path: Path, format: Literal["text", "json", "dot", "mermaid"]
) -> None:
    (tmp_path / "f.yaml").write_text(NUMBERS)
    secrets = {"LENGTH": "98765 s", "COUNT": "98765", "CRON": "57 13 * * 2", "AT": "2031-12-24T16:00:00Z"}
    loaded = load(tmp_path / "f.yaml", secrets, tmp_path)
    assert loaded.plan is not None
    shown = explain(loaded.plan, format, None)
    assert "${COUNT}" in shown
    assert [value for value in ("98765", "57 13", "2031", "1955894400") if value in shown] == []


def test_a_number_from_a_variable_is_still_hidden_after_a_journey_to_another_process() -> None:
    arrived = pickle.loads(pickle.dumps(HiddenNumber(98765, "${COUNT}")))
    assert (arrived, shown_number(arrived)) == (98765, "${COUNT}")


def test_a_name_cannot_come_from_a_variable(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text("name: ${NAME}\n")
    told = [problem.message for problem in load(tmp_path / "f.yaml", {"NAME": "hunter2"}, tmp_path).problems]
    assert told == ["the file: name: a name is shown, so that it cannot come from a variable; write it out"]


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
