"""`estream conformance`: says what failed and how, and ends with a status that a script can ask for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from estream.cli import cli
from estream.conformance import in_process, run_files, same
from estream.errors import EStreamError
from estream.testing import WHOLE

SECOND = 1_000_000
DETECTED = {"event": "E1", "start": SECOND, "end": 2 * SECOND, "ids": [1, 2], "attrs": {}}


def case(**changes: Any) -> dict[str, Any]:
    rows = [{"event": name, "time": at * SECOND, "id": at, "attrs": {}} for name, at in (("A", 1), ("B", 2))]
    vector = {"name": "one", "kind": "event", "events": {"E1": {"when": "A ; B"}}, "observe": ["E1"], "input": rows}
    return {**vector, "expected": [DETECTED], **changes}


def write(path: Path, *cases: dict[str, Any]) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in cases))
    return path


def test_all_passed(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["conformance", str(write(tmp_path / "v.jsonl", case(), case()))])
    assert (result.exit_code, result.stdout) == (0, "2 passed, 0 failed\n")


def test_a_failure_shows_what_was_expected_and_found(tmp_path: Path) -> None:
    path = write(tmp_path / "v.jsonl", case(), case(name="two", expected=[]))
    result = CliRunner().invoke(cli, ["conformance", str(path), "--split", "2", "--shuffle", "1"])
    assert result.exit_code == 1
    found = json.dumps([DETECTED])
    assert result.stdout == f"v.jsonl: two\n  expected []\n  found    {found}\n1 passed, 1 failed\n"


def test_json_for_programs(tmp_path: Path) -> None:
    path = write(tmp_path / "v.jsonl", case(expected=[]), case(kind="riddle"))
    result = CliRunner().invoke(cli, ["conformance", str(path), "--format", "json"])
    failed = [{"file": "v.jsonl", "name": "one", "expected": [], "found": [DETECTED]}]
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"passed": 0, "failed": failed, "skipped": 1})


def test_a_definition_that_is_wrong_is_a_failure_that_says_why(tmp_path: Path) -> None:
    (failure,) = run_files(
        [write(tmp_path / "v.jsonl", case(events={"E1": {"when": "A ;"}}))], in_process(WHOLE)
    ).failures
    assert "E1" in failure.found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "v.jsonl:1:1: the line is not JSON"),
        ("[]", "v.jsonl:1:1: the line is no JSON object"),
        ('{"name": "x", "kind": "event", "input": [], "expected": []}', "v.jsonl:1:1: the case has no 'events'"),
        ('{"name": "x", "kind": "else", "input": [{"event": "A"}]}', "v.jsonl:1:1: input.0 has no 'time'"),
        ('{"name": 7, "kind": ["event"], "input": [], "expected": []}', "v.jsonl:1:1: name: .* valid string"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "v.jsonl").write_text(text)
    with pytest.raises(EStreamError, match=message):
        run_files([tmp_path / "v.jsonl"], in_process(WHOLE))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EStreamError, match=r"cannot read .*none\.jsonl: there is no such file"):
        run_files([tmp_path / "none.jsonl"], in_process(WHOLE))


def test_fractions_are_equal_within_a_billionth() -> None:
    one = {**DETECTED, "attrs": {"x": 0.1 + 0.2}}
    assert same([one], [{**DETECTED, "attrs": {"x": 0.3}}])
    assert not same([one], [{**DETECTED, "attrs": {"x": 0.3001}}])
    assert not same([one], [])
