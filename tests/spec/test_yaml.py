"""YAML is read without surprises, and nobody's file can harm."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.scalar import resolve
from estream.yaml import read_yaml


def problems(content: str | bytes) -> list[str]:
    return [str(problem) for problem in read_yaml(content, "f.yaml").problems]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("on", "on"), ("off", "off"), ("yes", "yes"), ("no", "no"), ("true", True), ("False", False), ("~", None),
        ("12", 12), ("0o17", 15), ("017", 17), ("0x1F", 31), ("1_000", "1_000"), ("1:30", "1:30"), ("1.5", 1.5),
        ("1e3", 1000.0), ("-.inf", float("-inf")), ("'12'", "12"), ("!!str 12", "12"), ("2026-12-24", "2026-12-24"),
    ],
)  # fmt: skip
def test_plain_scalars_follow_the_core_schema(written: str, meant: object) -> None:
    data = read_yaml(f"a: {written}", "f.yaml").data
    assert isinstance(data, dict)
    assert resolve(data["a"]) == meant
    assert type(resolve(data["a"])) in (type(meant), type(data["a"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: 1\nb: 2\na: 3", "f.yaml:3:1: the key 'a' is here twice; the first is in line 1, column 1"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: a second document begins here; a file has one"),
        (
            "a: !!python/object:os.system x",
            "f.yaml:1:4: the tag '!!python/object:os.system' is not read; write the value without it",
        ),
        ("<<: {a: 1}", "f.yaml:1:1: merge keys '<<' are not read; write the keys out, or alias the whole value"),
        ("? [a]\n: b", "f.yaml:1:3: a list cannot be a key; write a name"),
        ("a: &a [*a]", "f.yaml:1:8: '*a' contains itself"),
        ("a: *b", "f.yaml:1:4: there is no anchor '&b' before this alias"),
        (b"a: \xff", "f.yaml:1:4: this byte is not UTF-8; save the file as UTF-8"),
        ("a: 1\nb: \x01", "f.yaml:2:4: the character U+0001 may not stand in a file; remove it"),
        ("", "f.yaml:1:1: the file is empty"),
        ("[" * 200_000, "f.yaml:1:65: nested more than 64 deep"),
        ("- " * 200_000, "f.yaml:1:129: nested more than 64 deep"),
        ("a" * 1_000_001, "f.yaml:1:1: the file has more than 1,000,000 bytes; split it with 'include'"),
    ],
)
def test_refused_at_its_place(content: str | bytes, message: str) -> None:
    assert problems(content) == [message]


def test_alias_bomb_is_counted_not_expanded() -> None:
    names = "abcdefghijkl"
    levels = [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in pairwise(names)]
    assert "more than 100,000 values" in problems("\n".join(["a: &a [x, x, x]", *levels]))[0]


def test_aliases_that_nest_deeper_than_the_cap_are_refused() -> None:
    deep = "a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40
    assert "nested more than 64 deep" in problems(deep)[0]


def test_offsets_in_a_value_are_places_in_the_file() -> None:
    text = "q:\n  sql: |\n    SELECT *\n\n      FROM x\n  m: \"a = 1\"\n  n: 'it''s'\n  p: x y # c\n"
    data = read_yaml(text, "f.yaml").data
    assert isinstance(data, dict)
    query = data["q"]
    for key, word, line, column in (("sql", "FROM", 5, 7), ("m", "= 1", 6, 9), ("n", "s", 7, 6), ("p", "y", 8, 8)):
        place = query[key].place_at(query[key].index(word))
        assert (place.line, place.column) == (line, column), key


def test_nothing_at_the_end_of_a_file_stands_on_its_last_line() -> None:
    data = read_yaml("a:\n- ", "f.yaml").data
    assert isinstance(data, dict)
    assert (data["a"][0].place.line, data["a"][0].is_nothing) == (2, True)


@given(st.one_of(st.binary(max_size=80), st.text(max_size=80), st.text("ab:- []{}&*!|>'\"\n#,?", max_size=80)))
def test_any_text_gives_data_or_located_problems(content: str | bytes) -> None:
    document = read_yaml(content, "f.yaml")
    assert document.data is not None or document.problems
    assert all(1 <= problem.place.line <= len(document.lines) for problem in document.problems)
    assert all(problem.place.column >= 1 for problem in document.problems)
