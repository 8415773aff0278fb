"""The help of the command line teaches, and the page of commands tells all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from estream.cli import cli
from estream.cli_help import SECTIONS

PAGE = (Path(__file__).parent.parent / "docs" / "cli.md").read_text()
PROGRAM: Any = typer.main.get_command(cli)
WIDTH = 80
# Of every program that typer makes; the page tells them once, at its top.
COMMON = {"--help", "-h", "--show-completion"}


def commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its whole name, those inside others too."""
    for name, command in group.commands.items():
        yield before + name, command
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")


COMMANDS = dict(commands(PROGRAM))


def help_of(*words: str) -> str:
    done = CliRunner().invoke(cli, [*words, "--help"], env={"COLUMNS": str(WIDTH)})
    assert done.exit_code == 0
    return done.output


def options(command: Any) -> list[str]:
    return [word for parameter in command.params for word in parameter.opts if word.startswith("-")]


def section_of_page(name: str) -> str:
    """What the page says under the heading of a command."""
    found = re.search(rf"^## `estream {name}\b[^\n]*\n.*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no heading for `estream {name}`"
    return found.group()


def test_every_command_stands_in_a_section_with_its_whole_line() -> None:
    text = help_of()
    assert all(f"{section}:\n" in text for section in SECTIONS)
    for name in PROGRAM.commands:
        (line,) = re.findall(rf"^  {name} +(\S.*)$", text, re.MULTILINE)
        assert line.endswith(".")
        assert not line.endswith("...")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "rule"])
def test_help_has_an_example_that_can_be_copied_as_one_line(name: str) -> None:
    _, example = help_of(*name.split()).split("  Example:\n\n")
    first, after = example.split("\n")[:2]
    assert first.startswith(f"      estream {name}")
    assert after == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_commands_has_every_option(name: str) -> None:
    told = section_of_page(name)
    assert [word for word in options(COMMANDS[name]) if word not in COMMON and word not in told] == []


def test_the_page_of_commands_has_the_options_of_the_program() -> None:
    assert [word for word in options(PROGRAM) if word not in COMMON and word not in PAGE] == []


def test_the_page_of_commands_has_no_command_that_is_not_there() -> None:
    told = set(re.findall(r"^## `estream ([a-z]+(?: [a-z]+)?)\b", PAGE, re.MULTILINE))
    assert told - set(COMMANDS) == set()


def test_the_page_of_commands_has_each_command_once() -> None:
    headings = re.findall(r"^## `estream ([a-z]+(?: [a-z]+)?)\b", PAGE, re.MULTILINE)
    assert len(headings) == len(set(headings))
