"""Every mistake of a CEQ file is told in one go, at its place, with what is right."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.spec.reader import Read, parse_ceq, read_ceq

RIGHT = """\
version: 1
name: cars
streams:
  S: {source: {format: rate, options: {n: 5}}, schema: {ts: timestamp, v: double}, time: ts, watermark: 10 s}
events:
  E: {on: S, mask: v > 1}
  C: {when: E ; E, context: recent, partition_by: {E: v}, within: 5 min}
  T: {cron: "0 9 * * *", timezone: UTC}
rules:
  R: {on: C, actions: [{log: "{E.v}"}, {webhook: {url: "http://x", timeout: 5 s}}], priority: 3}
"""


def told(text: str, **environment: str) -> list[str]:
    return [str(problem) for problem in parse_ceq(text, "f.yaml", environment).problems]


def read(folder: Path, **files: str) -> Read:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return read_ceq(folder / "main.yaml", folder, {})


def test_a_right_file_has_no_problems() -> None:
    parsed = parse_ceq(RIGHT, "f.yaml", {})
    assert parsed.problems == ()
    assert (list(parsed.ceq.events), parsed.ceq.name) == (["E", "C", "T"], "cars")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("evnts: {}", "f.yaml:1:1: unknown key 'evnts' in the file; did you mean 'events'?"),
        (
            "events: {E: {when: A, partiton_by: k}}",
            "f.yaml:1:23: unknown key 'partiton_by' in event 'E'; did you mean 'partition_by'?",
        ),
        (
            "events: {E: {when: A, context: recnt}}",
            "f.yaml:1:32: event 'E': context is the text 'recnt'; did you mean 'recent'?",
        ),
        ("events: {E: {}}", "f.yaml:1:10: event 'E': needs one of on, pattern, when, at, every, cron, raised"),
        ("events: {E: 7}", "f.yaml:1:13: event 'E' is the number 7, not a map"),
        (
            "events: {Not: {on: S}}",
            "f.yaml:1:10: event 'Not': the word is reserved in event expressions; choose another name",
        ),
        ("events: {E: {at: x, every: 5 s}}", "f.yaml:1:21: event 'E': has both 'at' and 'every'; keep one"),
        ("events: {E: {on: S, mask: }}", "f.yaml:1:27: event 'E': mask: needs a value"),
        ("events: [a]", "f.yaml:1:9: events is a list, not a map of names"),
        ("queries: {Q: {sql: x, from: S}}", "f.yaml:1:23: query 'Q': has both 'sql' and 'from'; keep one"),
        ("streams: {S: {source: {format: x}, schema: {a: int}}}", "f.yaml:1:11: stream 'S': 'time' is missing"),
        (
            "rules: {R: {on: E, actions: [{webhok: x}]}}",
            "f.yaml:1:31: unknown key 'webhok' in rule 'R': actions[1]; did you mean 'webhook'?",
        ),
        ("rules: {R: {on: E, actions: []}}", "f.yaml:1:29: rule 'R': actions is empty"),
        (
            "rules: {R: {on: E, actions: [log: x], priority: '5'}}",
            "f.yaml:1:49: rule 'R': priority is the text '5', not a whole number",
        ),
        ("version: 2", "f.yaml:1:10: the file: version is the number 2; right: 1"),
        ("7", "f.yaml:1:1: the file is the number 7, not a map"),
    ],
)
def test_told_at_its_place(text: str, message: str) -> None:
    assert told(text) == [message]


def test_a_wrong_part_does_not_hide_the_others() -> None:
    parsed = parse_ceq("events:\n  A: {on: S}\n  B: {onn: S}\nrules:\n  R: {on: A}\n", "f.yaml", {})
    assert list(parsed.ceq.events) == ["A"]
    assert parsed.broken == {("events", "B"), ("rules", "R")}
    assert len(parsed.problems) == 2


def test_variables_and_their_defaults() -> None:
    text = 'rules: {R: {on: E, actions: [{log: "${A} ${B:-b} $${C}"}], priority: "${P}"}}'
    rule = parse_ceq(text, "f.yaml", {"A": "a", "P": "7"}).ceq.rules
    assert "a b ${C}" in [getattr(action, "log", None) for part in rule.values() for action in part.actions]
    assert [part.priority for part in rule.values()] == [7]


def test_a_variable_without_a_value_is_told_once() -> None:
    assert told('events: {E: {when: A, within: "${W}"}}') == [
        "f.yaml:1:32: the environment variable 'W' is not set; set it, or write '${W:-default}'"
    ]


def test_secret_values_are_in_no_message() -> None:
    text = 'events: {E: {when: A, within: "${W}", context: "${C}"}}'
    assert "hunter" not in " ".join(told(text, W="7 hunter2", C="hunter3"))


def test_secrets_come_from_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hunter2\n")
    found = read(tmp_path, main="rules: {R: {on: E, actions: [webhook: {url: x, secret_file: key}]}}")
    assert found.ceq is not None
    assert "hunter2" not in repr(found)
    assert [getattr(rule.actions[0], "webhook").secret for rule in found.ceq.rules.values()] == ["hunter2"]  # noqa: B009


def test_a_missing_secret_file_is_told(tmp_path: Path) -> None:
    found = read(tmp_path, main="rules: {R: {on: E, actions: [webhook: {url: x, secret_file: none}]}}")
    assert [problem.message for problem in found.problems] == ["rule 'R': secret_file is 'none': there is no such file"]


def test_included_parts_are_merged(tmp_path: Path) -> None:
    found = read(tmp_path, main="include: [a.yaml]\nevents: {E: {on: S}}", a="events: {F: {on: S}}")
    assert found.ceq is not None
    assert (found.problems, list(found.ceq.events)) == ((), ["F", "E"])
    assert set(found.sources) == {str(tmp_path / "main.yaml"), str(tmp_path / "a.yaml")}


@pytest.mark.parametrize(
    ("main", "other", "message"),
    [
        ("include: [b.yaml]", "", "include 'b.yaml': there is no such file"),
        ("include: ['../../etc/passwd']", "", "include '../../etc/passwd' is outside the project's folder"),
        (
            "include: [a.yaml]",
            "include: [main.yaml]",
            "files include each other: {0}/main.yaml -> {0}/a.yaml -> {0}/main.yaml",
        ),
        (
            "include: [a.yaml]\nevents: {E: {on: S}}",
            "events: {E: {on: S}}",
            "event 'E' is defined twice; the other is at {0}/a.yaml:1:10",
        ),
    ],
)
def test_wrong_includes_are_told(tmp_path: Path, main: str, other: str, message: str) -> None:
    found = read(tmp_path, main=main, a=other)
    assert [problem.message for problem in found.problems] == [message.format(tmp_path)]


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "out.yaml").write_text("events: {E: {on: S}}")
    (project / "in.yaml").symlink_to(tmp_path / "out.yaml")
    assert "outside the project's folder" in str(read(project, main="include: [in.yaml]").problems[0])


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    found = read_ceq(tmp_path / "none.yaml", tmp_path, {})
    assert (found.ceq, len(found.problems)) == (None, 1)


PIECES = st.sampled_from(
    [":", "{", "}", "[", "- ", "\n", "  ", "${X}", "null", "7", "true", "&a ", "*a", "<<", "'", "E", "!x "]
)


@given(st.integers(0, len(RIGHT)), st.integers(0, 12), PIECES)
def test_a_changed_file_gives_only_located_problems(start: int, length: int, piece: str) -> None:
    parsed = parse_ceq(RIGHT[:start] + piece + RIGHT[start + length :], "f.yaml", {})
    assert all(
        problem.place.file == "f.yaml" and 1 <= problem.place.line <= len(parsed.lines) for problem in parsed.problems
    )


@given(st.binary(max_size=100))
def test_any_bytes_give_only_located_problems(content: bytes) -> None:
    parsed = parse_ceq(content, "f.yaml", {})
    assert parsed.problems or parsed.readable


@pytest.mark.parametrize(
    ("file", "name"), [("ward_7.yaml", "ward_7"), ("7-north.ceq.yaml", "_7_north_ceq"), ("Zürich.yaml", "Z_rich")]
)
def test_a_file_without_a_name_has_its_own(tmp_path: Path, file: str, name: str) -> None:
    (tmp_path / file).write_text("events: {}")
    found = read_ceq(tmp_path / file, tmp_path, {}).ceq
    assert found is not None
    assert found.name == name


def test_included_files_do_not_name_the_whole(tmp_path: Path) -> None:
    found = read(tmp_path, main="include: [a.yaml]", a="name: other").ceq
    assert found is not None
    assert found.name == "main"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"# nothing yet\n\n# nor here\n", "the file is empty"),
        (b"name: caf\xe9\n", "this byte is not UTF-8; save the file as UTF-8"),
        (b"name: a\x00b", "the character U+0000 may not stand in a file; remove it"),
    ],
)
def test_what_is_no_text_is_told(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "main.yaml").write_bytes(content)
    assert [problem.message for problem in read(tmp_path).problems] == [message]


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "main.yaml")
    pipe = tmp_path / "main.yaml"
    assert [problem.message for problem in read(tmp_path).problems] == [f"cannot read '{pipe}': it is no regular file"]
    (tmp_path / "user.yaml").write_text("rules: {R: {on: E, actions: [webhook: {url_file: main.yaml}]}}")
    found = read_ceq(tmp_path / "user.yaml", tmp_path, {})
    assert [problem.message for problem in found.problems] == [
        "rule 'R': url_file is 'main.yaml': it is no regular file"
    ]


def test_the_one_field_of_an_action_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://example.org/hunter2\n")
    found = read(tmp_path, main="rules: {R: {on: E, actions: [webhook_file: url]}}")
    assert found.problems == ()
    assert "hunter2" not in repr(found)
