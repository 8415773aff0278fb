"""Every mistake is told at its place in words that help; right files are told nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.app import load
from estream.errors import Problem
from estream.plan.build import build
from estream.spec.check import check
from estream.spec.check_times import cron_problem, microseconds
from estream.spec.checked import Checked
from estream.spec.reader import Read, parse_ceq, read_ceq
from estream.spec.type_text import parse_type

DATA = Path(__file__).parent / "testdata"
WRONG = sorted((DATA / "wrong").rglob("*.yaml"))
RIGHT = sorted((DATA / "right").glob("*.yaml"))
RIGHT_TEXT = (DATA / "right" / "fever.yaml").read_text()


def problems_of(read: Read) -> list[Problem]:
    """What a user sees: problems of reading, of checking, and of planning what is right."""
    checked, found = check(read)
    problems = [*read.problems, *found]
    wrong = any(problem.severity == "error" for problem in problems)
    return [*problems, *build(checked, checked.events if wrong else ())[1]]


def checked(text: str) -> Checked:
    """The right parts of a text."""
    return check(read_text(text))[0]


def read_text(text: str) -> Read:
    """A text as if it were a file that includes no other."""
    parsed = parse_ceq(text, "file.yaml", {})
    return Read(parsed.ceq, parsed.problems, {}, parsed.broken)


@pytest.mark.parametrize("path", WRONG, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_wrong_file_gets_exactly_these_messages(path: Path) -> None:
    told = [str(problem).replace(f"{path.parent}/", "") for problem in load(path, {}, path.parent).problems]
    assert told == path.with_suffix(".expected").read_text().splitlines()
    assert told


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_a_right_file_gets_no_message(path: Path) -> None:
    assert load(path, {}, path.parent).problems == ()


def test_there_are_many_kinds_of_mistakes() -> None:
    assert len(WRONG) >= 120


@pytest.mark.parametrize("spelled", ["Change", "change"])
def test_queries_come_after_those_they_read_whatever_the_case(spelled: str) -> None:
    names = list(checked(RIGHT_TEXT.replace("FROM Vitals v", f"FROM {spelled} v")).queries)
    assert names.index("Change") < names.index("InWard")


def test_an_aggregate_query_is_known_by_its_keys_and_window() -> None:
    accident = check(read_ceq(DATA / "right" / "accident.yaml", DATA, {}))[0]
    assert accident.queries["Immobile"].default_id == ("car_id", "exp_way", "dir", "seg", "lane", "x_pos", "ts")
    assert accident.queries["CarSegStr"].default_id == ()


def test_leaves_are_those_that_an_occurrence_contains() -> None:
    events = checked(RIGHT_TEXT).events
    assert events["Alarm"].leaves == ("Fever", "Racing", "Strange")
    assert events["Checks"].leaves == ("Fever", "Racing", "Strange")


def test_a_broken_part_silences_what_depends_on_it() -> None:
    text = RIGHT_TEXT.replace("temperature: double", "temperature: dubble")
    assert [str(problem) for problem in problems_of(read_text(text))] == [
        "file.yaml:4:59: stream 'Vitals': column 'temperature': 'dubble' is not a type; did you mean 'double'?"
    ]


@pytest.mark.parametrize("line", ["0 9 * * MON-FRI", "*/5 * * * *", "0 0 1,15 JAN-MAR 0", "1-59/2 * 31 1 7"])
def test_cron_lines_that_are_right(line: str) -> None:
    assert cron_problem(line) is None


def test_a_timestamp_is_utc_unless_it_says_otherwise() -> None:
    assert microseconds("1970-01-01T00:00:01") == 1_000_000
    assert microseconds("1970-01-01T01:00:00.5+01:00") == 500_000


@pytest.mark.parametrize(
    ("written", "meant"),
    [("LONG", "bigint"), ("numeric(5)", "decimal(5,0)"), ("array< array<int> >", "array<array<int>>"),
     ("map<string, double>", "map<string,double>"), ("struct<a:int, b:decimal(4,2)>", "struct<a:int,b:decimal(4,2)>")],
)  # fmt: skip
def test_types_as_people_write_them(written: str, meant: str) -> None:
    assert str(parse_type(written)) == meant


MARKS = ["", " ", "(", ")", "'", ";", "*", ".", ",", "\n  ", ":", "{", "}"]
WORDS = ["null", "Alarm", "Vitals", "SELECT", "5 min", "not", "1e9"]
PIECES = st.sampled_from([*MARKS, *WORDS])


@given(st.integers(0, len(RIGHT_TEXT)), st.integers(0, 12), PIECES)
def test_no_change_of_a_right_file_gives_a_traceback(position: int, cut: int, piece: str) -> None:
    text = RIGHT_TEXT[:position] + piece + RIGHT_TEXT[position + cut :]
    for problem in problems_of(read_text(text)):
        assert problem.place.file == "file.yaml"
        assert 1 <= problem.place.line <= text.count("\n") + 2


EXPRESSIONS = st.sampled_from(["mask: temperature > 38.5", "when: Fever ; (Racing or Strange)", "up{2,4} down"])


@given(EXPRESSIONS, st.text(max_size=20))
def test_no_expression_gives_a_traceback(part: str, text: str) -> None:
    key = part.split(":")[0] + ": " if ":" in part else ""
    quoted = "'" + text.replace("'", "''").replace("\n", " ") + "'"
    for problem in problems_of(read_text(RIGHT_TEXT.replace(part, f"{key}{quoted}"))):
        assert problem.message
