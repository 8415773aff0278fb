"""The command line: output, exit status, and no traceback for a user's mistake."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from estream import __version__

ROOT = Path(__file__).parent.parent
RIGHT = """\
version: 1
name: fever
streams:
  Readings:
    source: {format: json, options: {path: data}}
    schema: {ts: timestamp, patient: bigint, temperature: double}
    time: ts
events:
  Fever: {on: Readings, mask: temperature >= 39}
  Calm: {on: Readings, mask: temperature < 37}
  Stays: {when: "absent(Fever, Calm, 2 hours)", partition_by: patient}
"""
WRONG = RIGHT.replace("temperature >= 39", "temp >= 39")
UNBOUNDED = RIGHT.replace('"absent(Fever, Calm, 2 hours)"', "Fever ; Calm, context: chronicle")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the program in a folder of its own."""

    def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        command = [sys.executable, "-m", "estream", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)

    return start


def write(folder: Path, text: str) -> str:
    (folder / "fever.yaml").write_text(text)
    return "fever.yaml"


def test_a_right_file_exits_with_0(run: Run, tmp_path: Path) -> None:
    done = run("check", write(tmp_path, RIGHT))
    assert (done.returncode, done.stdout, done.stderr) == (0, "fever.yaml: no problems\n", "")


def test_a_wrong_file_exits_with_2_and_shows_the_place(run: Run, tmp_path: Path) -> None:
    done = run("check", write(tmp_path, WRONG))
    assert done.returncode == 2
    assert done.stdout.startswith("fever.yaml:9:31: event 'Fever': ")
    assert "  9 |   Fever: {on: Readings, mask: temp >= 39}\n" in done.stdout
    assert f"    | {' ' * 30}^^^^\n" in done.stdout
    assert done.stdout.endswith("fever.yaml: 1 error\n")


def test_warnings_exit_with_1_only_under_strict(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path, UNBOUNDED)
    assert [run("check", file).returncode, run("check", "--strict", file).returncode] == [0, 1]


def test_check_as_json(run: Run, tmp_path: Path) -> None:
    done = run("check", "--format", "json", write(tmp_path, WRONG))
    found = json.loads(done.stdout)
    assert done.returncode == 2
    assert [(each["line"], each["column"], each["length"]) for each in found["problems"]] == [(9, 31, 4)]


def test_several_files_are_all_checked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "right.yaml").write_text(RIGHT)
    done = run("check", "right.yaml", write(tmp_path, WRONG))
    assert done.returncode == 2
    assert done.stdout.endswith("2 files: 1 error\n")


@pytest.mark.parametrize("command", ["check", "explain"])
@pytest.mark.parametrize(("path", "words"), [("nowhere.yaml", "no such file"), (".", "is a folder")])
def test_what_is_no_file_gets_one_line(run: Run, command: str, path: str, words: str) -> None:
    done = run(command, path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_explain_of_a_wrong_file_says_what_is_wrong(run: Run, tmp_path: Path) -> None:
    done = run("explain", write(tmp_path, WRONG))
    assert (done.returncode, done.stdout) == (2, "")
    assert "fever.yaml:9:31" in done.stderr


@pytest.mark.parametrize(
    ("format", "beginning"), [("text", "fever"), ("json", "{"), ("dot", "digraph"), ("mermaid", "flowchart")]
)
def test_explain_in_each_format(run: Run, tmp_path: Path, format: str, beginning: str) -> None:
    done = run("explain", write(tmp_path, RIGHT), "--format", format)
    assert (done.returncode, done.stderr) == (0, "")
    assert beginning in done.stdout.splitlines()[0]
    assert "Stays" in done.stdout


def test_explain_shows_only_what_is_selected(run: Run, tmp_path: Path) -> None:
    done = run("explain", write(tmp_path, RIGHT), "--select", "Calm")
    assert done.returncode == 0
    assert "Calm" in done.stdout
    assert "Stays" not in done.stdout


def test_an_unknown_selection_is_a_mistake_with_a_message(run: Run, tmp_path: Path) -> None:
    done = run("explain", write(tmp_path, RIGHT), "--select", "Clam")
    assert done.returncode == 2
    assert "Clam" in done.stderr
    assert "Traceback" not in done.stderr


def test_secrets_are_never_shown(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path, RIGHT.replace("path: data", 'path: "${DATA}"'))
    for arguments in (["check", file], ["explain", file], ["explain", file, "--format", "json"]):
        done = run(*arguments, DATA="hunter2-secret")
        assert done.returncode == 0
        assert "hunter2-secret" not in done.stdout + done.stderr


def test_schema_is_json(run: Run) -> None:
    done = run("schema")
    assert done.returncode == 0
    assert json.loads(done.stdout)["$schema"].startswith("https://json-schema.org/")


def test_doctor_as_json(run: Run) -> None:
    done = run("doctor", "--format", "json")
    findings = json.loads(done.stdout)
    assert {"name", "status", "found", "advice"} == set(findings[0])
    assert done.returncode == (2 if any(finding["status"] == "fail" for finding in findings) else 0)


def test_a_wrong_setting_is_shown_at_its_place(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "local.yaml").write_text("log:\n  levle: info\n")
    done = run("doctor")
    assert done.returncode == 2
    assert "local.yaml:2:3" in done.stderr


def test_the_version(run: Run) -> None:
    assert run("--version").stdout == f"estream {__version__}\n"


@pytest.mark.parametrize("command", ["check", "explain", "schema", "init", "doctor"])
def test_help_teaches_with_an_example(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.returncode == 0
    assert f"estream {command}" in done.stdout.split("Example:")[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands(run: Run, shell: str) -> None:
    script = run("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert script.returncode == 0
    assert "_ESTREAM_COMPLETE" in script.stdout


def test_completion_offers_the_commands(run: Run) -> None:
    done = run(_ESTREAM_COMPLETE="complete_bash", COMP_WORDS="estream ex", COMP_CWORD="1")
    assert done.stdout.split() == ["explain"]


@pytest.mark.parametrize("module", ["typer", "estream.app", "sqlglot", "lark"])
def test_ctrl_c_ends_quietly_with_130_whatever_is_under_way(run: Run, tmp_path: Path, module: str) -> None:
    done = run("check", write(tmp_path, RIGHT), **failing(tmp_path, module, "KeyboardInterrupt"))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_ctrl_c_that_an_import_wraps_in_another_error_ends_quietly_too(run: Run, tmp_path: Path) -> None:
    wrapped = "RuntimeError('wrapped') from KeyboardInterrupt()"
    done = run("check", write(tmp_path, RIGHT), **failing(tmp_path, "estream.app", wrapped))
    assert (done.returncode, done.stderr) == (130, "")


def test_ctrl_c_while_the_program_itself_is_imported_ends_quietly(run: Run, tmp_path: Path) -> None:
    pressed = "RuntimeError(__import__('signal').raise_signal(2))"
    done = run("check", write(tmp_path, RIGHT), **failing(tmp_path, "typer", pressed))
    assert (done.returncode, done.stderr) == (130, "")


def test_a_bug_is_told_in_one_line_without_its_words(run: Run, tmp_path: Path) -> None:
    done = run("check", write(tmp_path, RIGHT), **failing(tmp_path, "estream.app", "ValueError('hunter2')"))
    assert done.returncode == 70
    assert done.stderr == (
        "This is a bug in EStream, not in your file (ValueError in sitecustomize.py, line 5). "
        "Please report it with what --debug shows.\n"
    )


@pytest.mark.parametrize(("options", "environment"), [(["--debug"], {}), ([], {"ESTREAM_DEBUG": "1"})])
def test_debug_shows_the_traceback_of_a_bug(
    run: Run, tmp_path: Path, options: list[str], environment: dict[str, str]
) -> None:
    variables = failing(tmp_path, "estream.app", "ValueError('here')")
    done = run(*options, "check", write(tmp_path, RIGHT), **variables, **environment)
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("ValueError: here\n")


def failing(folder: Path, module: str, error: str) -> dict[str, str]:
    """Variables with which Python fails when it imports the module."""
    (folder / "sitecustomize.py").write_text(
        "import sys\n\nclass Fail:\n    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise {error}\n\nsys.meta_path.insert(0, Fail())\n"
    )
    return {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "estream", "schema"]
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(command, cwd=ROOT, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == ""


def test_an_input_that_belongs_to_no_stream_is_told_with_the_streams_there_are(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path, RIGHT)
    done = run("replay", file, "--input", "Reading=data", "--output", "found.jsonl", "--host", "process")
    assert done.returncode == 2
    assert done.stderr == "--input Reading: there is no such stream; there are Readings\n"
