"""Callbacks: from the rules' folder only, marked, importable, with the right signature; mistakes are told first."""

from __future__ import annotations

from pathlib import Path

import pytest

import estream
from estream.errors import EStreamError
from estream.rule.action import Services
from estream.rule.registry import CallbackError, Role, find
from estream.rule.rule import build_rules, check_callbacks
from estream.settings import RuleSettings
from tests.rule.desk import STREAM, load

RIGHT = """
from estream import action, condition
from rules.shared import WORD

@action
def tell(detection):
    return WORD

@action
async def tell_later(detection, loudly=False):
    pass

@condition
def is_day(detection):
    return True

@action
def two(detection, other):
    pass

@action
def stream(detection):
    yield detection

def plain(detection):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rules = tmp_path / "rules"
    rules.mkdir()
    for name, content in {"desk": RIGHT, "shared": "WORD = 'hello'\n", "broken": "import nothing_like_this\n"}.items():
        (rules / f"{name}.py").write_text(content)
    (rules / "away.py").symlink_to(tmp_path / "outside.py")
    (tmp_path / "outside.py").write_text(RIGHT)
    return rules


def test_marked_functions_are_found_and_modules_of_the_folder_import_each_other(folder: Path) -> None:
    assert find(folder, "rules.desk:tell", "action")(None) == "hello"
    assert find(folder, "rules.desk:is_day", "condition")(None) is True
    find(folder, "rules.desk:tell_later", "action")


@pytest.mark.parametrize(
    ("name", "role", "said"),
    [
        ("rules.desk:tel", "action", "has no 'tel'; did you mean 'tell'"),
        ("rules.desk:plain", "action", "is not marked; write @estream.action above it"),
        ("rules.desk:tell", "condition", "is marked as action; write @estream.condition above it"),
        ("rules.desk:two", "action", r"'two\(detection, other\)' cannot be called with a detection alone"),
        ("rules.desk:stream", "action", "is a generator"),
        ("rules.nowhere:f", "action", r"there is no file rules/nowhere\.py"),
        ("rules.broken:f", "action", r"ModuleNotFoundError: No module named 'nothing_like_this' \(broken.py, line 1\)"),
        ("rules.away:tell", "action", "is a link that leaves the folder"),
        ("os:system", "action", "is not in the folder 'rules'"),
    ],
)
def test_what_cannot_be_a_callback_is_told_in_one_sentence(folder: Path, name: str, role: Role, said: str) -> None:
    with pytest.raises(CallbackError, match=said):
        find(folder, name, role)


def test_every_wrong_callback_of_a_file_is_told_at_its_place(folder: Path) -> None:
    text = STREAM + (
        "events:\n  A: {on: Rows}\nrules:\n"
        "  r:\n    on: A\n    condition: {python: rules.desk:tell}\n"
        "    actions: [{python: rules.desk:plain}, {python: rules.desk:tell}]\n"
    )
    checked, plan = load(text)
    problems = check_callbacks(checked, Services(rules=folder))
    assert [(one.place.line, one.place.column) for one in problems] == [(12, 25), (13, 24)]
    with pytest.raises(EStreamError) as told:
        build_rules(checked, plan, RuleSettings(), Services(rules=folder))
    assert {one.place.line for one in told.value.problems} == {12, 13}


def test_the_names_of_the_package_are_there_when_they_are_asked_for() -> None:
    assert estream.action.__name__ == "action"
    assert estream.condition.__name__ == "condition"
    assert estream.Detection.__name__ == "Detection"
    assert estream.Engine.__name__ == "Engine"
    with pytest.raises(AttributeError, match="no attribute 'Engines'"):
        _ = estream.Engines  # type: ignore[attr-defined]
