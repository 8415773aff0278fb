"""What the documentation shows is true: its CEQ files are right, and the first steps do what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from estream.app import load

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIRST_STEPS = (ROOT / "docs" / "getting-started.md").read_text()
# They set up the machine, start Spark, or ask what a run on Spark left behind.
NOT_HERE = ("make setup", ". .venv/", "estream doctor", "estream run", "estream history")
# It shows the whole language at once, and so names streams that it does not have.
SHOWS_THE_LANGUAGE = "ceq.md"


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a page that are in a language."""
    every = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for named, block in every if named == language]


def whole_files() -> list[tuple[str, str]]:
    """Every YAML block that stands by itself: it brings the streams that its events read."""
    found = []
    for page in PAGES:
        for number, block in enumerate(blocks(page.read_text(), "yaml")):
            if "streams" in yaml.safe_load(block) and page.name != SHOWS_THE_LANGUAGE:
                found.append((f"{page.stem}-{number}", block))
    return found


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in whole_files()])
def test_a_whole_ceq_file_on_a_page_is_right(text: str, tmp_path: Path) -> None:
    file = tmp_path / "page.yaml"
    file.write_text(text)
    assert [str(problem) for problem in load(file, {}).problems] == []


def test_the_pages_have_whole_ceq_files() -> None:
    assert {name.rsplit("-", 1)[0] for name, _ in whole_files()} >= {"README", "index", "operators"}


def steps() -> str:
    """The commands of the first steps, those that need neither Spark nor a new environment."""
    lines = "".join(blocks(FIRST_STEPS, "sh")).splitlines()
    return "\n".join(line for line in lines if not line.startswith(NOT_HERE))


def in_a_shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the commands say in a folder."""
    shell = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-euc", commands], cwd=folder, env=shell, capture_output=True, text=True, check=False
    )


def test_the_first_steps_do_what_they_say(tmp_path: Path) -> None:
    done = in_a_shell(steps(), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ceq_specs/fever.yaml: no problems\n" in done.stdout
    assert done.stderr.endswith("found.jsonl: 1 detection\n")
    (detection,) = blocks(FIRST_STEPS, "json")
    assert done.stdout.endswith(detection)


def test_the_application_on_the_page_of_patterns_finds_what_the_page_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "patterns.md").read_text()
    (tmp_path / "ceq_specs").symlink_to(ROOT / "ceq_specs")
    done = in_a_shell(blocks(page, "sh")[0], tmp_path)
    assert done.returncode == 0, done.stderr
    assert [done.stdout] == blocks(page, "json")


def test_the_mistake_of_the_first_steps_is_told_as_the_page_shows_it(tmp_path: Path) -> None:
    shown = next(block for block in blocks(FIRST_STEPS, "") if "'temp'" in block)
    template = (ROOT / "estream" / "template" / "ceq_specs" / "fever.yaml").read_text()
    (tmp_path / "fever.yaml").write_text(template.replace("mask: temperature >= 39", "mask: temp >= 39"))
    (problem,) = load(tmp_path / "fever.yaml", {}).problems
    assert str(problem).replace(f"{tmp_path}", "ceq_specs") == shown.splitlines()[0]
