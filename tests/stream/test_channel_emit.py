"""Rows into channels: typed, all or none, and what is wrong is told at its place."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import estream
from estream.errors import EStreamError
from estream.stream.channel import Channel
from estream.stream.channel_dead_letter import DeadLetter, bury, dead_letters
from estream.stream.channel_emit import emit_json, emit_rows, find_channel
from estream.stream.channel_rows import rows_from_json, rows_from_values
from estream.stream.channel_schema import parse_columns, type_name

ROOT = Path(__file__).parents[2]


def read(kind: str, *texts: str) -> list[Any]:
    table = rows_from_json([f'{{"v": {text}}}' for text in texts], parse_columns(f"v {kind}"), "rows")
    return list(table["v"].to_pylist())


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("boolean", "true", True),
        ("tinyint", "-128", -128),
        ("bigint", "9223372036854775807", 2**63 - 1),
        ("double", "3", 3.0),
        ("string", '"é"', "é"),
        ("decimal(20,4)", "1234567890123456.7891", Decimal("1234567890123456.7891")),
        ("decimal(5,2)", '"1.50"', Decimal("1.50")),
        ("date", '"2026-02-28"', date(2026, 2, 28)),
        ("timestamp", '"2026-01-01T10:00:00+01:00"', datetime(2026, 1, 1, 9, tzinfo=UTC)),
        ("timestamp", '"2026-01-01 10:00:00.000001"', datetime(2026, 1, 1, 10, 0, 0, 1, tzinfo=UTC)),
        ("timestamp", "1000001", datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC)),
        ("binary", '"aGk="', b"hi"),
        ("array<int>", "[1, null]", [1, None]),
        ("map<string,double>", '{"a": 1}', [("a", 1.0)]),
        ("struct<a:int,b:string>", '{"a": 1}', {"a": 1, "b": None}),
        ("int", "null", None),
    ],
)
def test_a_value_of_json_is_read_in_the_type_of_its_column(kind: str, text: str, value: object) -> None:
    assert read(kind, text) == [value]


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("boolean", "1", "1"),
        ("tinyint", "128", "128"),
        ("int", "true", "true"),
        ("int", "1.0", "1.0"),
        ("double", '"1"', "the text '1'"),
        ("string", "1", "1"),
        ("decimal(5,2)", "1.555", "1.555"),
        ("decimal(5,2)", "1000", "1000"),
        ("decimal(5,2)", '"many"', "the text 'many'"),
        ("date", '"2026-02-30"', "the text '2026-02-30'"),
        ("timestamp", '"yesterday"', "the text 'yesterday'"),
        ("timestamp", "9223372036854775807", "9223372036854775807"),
        ("binary", '"?"', "the text '?'"),
        ("array<int>", '["x"]', "a list"),
        ("struct<a:int>", '{"b": 1}', "an object"),
    ],
)
def test_a_value_that_does_not_fit_is_told(kind: str, text: str, found: str) -> None:
    with pytest.raises(EStreamError) as error:
        read(kind, "null", text)
    assert str(error.value) == f"rows:2:2: column 'v' is {kind}; found {found}"


def test_every_wrong_row_is_told_at_its_place() -> None:
    lines = ['{"n": 1}', '{"m": 1}', "", '{"n": 1', "[1]", '{"a": 2, "n": "x"}', '{"n": NaN}']
    with pytest.raises(EStreamError) as error:
        rows_from_json(lines, parse_columns("n int, a bigint"), "rows.jsonl")
    assert str(error.value).splitlines() == [
        "rows.jsonl:2:2: unknown column 'm'; right: n, a",
        "rows.jsonl:4:8: this is no JSON: expecting ',' delimiter",
        'rows.jsonl:5:1: a row is an object like {"n": 1}; found a list',
        "rows.jsonl:6:10: column 'n' is int; found the text 'x'",
        "rows.jsonl:7:1: this is no JSON: NaN is not allowed",
    ]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_whatever_comes_is_a_row_or_a_problem(value: object) -> None:
    for kind in ("boolean", "int", "double", "string", "timestamp", "date", "decimal(9,3)", "binary", "array<string>"):
        with contextlib.suppress(EStreamError):
            made = rows_from_values([{"v": value}], parse_columns(f"v {kind}"), "rows")
            assert type_name(made.schema.field("v").type) == kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ts timestamp, n", "schema: column 'n' has no type"),
        ("n int, n int", "schema: column 'n' is there twice"),
        ("n itn", "schema: 'itn' is not a type; did you mean 'int'?"),
    ],
)
def test_a_wrong_schema_is_told(text: str, message: str) -> None:
    with pytest.raises(EStreamError) as error:
        parse_columns(text)
    assert str(error.value).startswith(message)


def test_python_appends_one_row_several_or_a_table(tmp_path: Path) -> None:
    channel = find_channel(tmp_path, "readings", "ts timestamp, n int")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert emit_rows(channel, {"ts": moment, "n": 1}) == 1
    assert emit_rows(channel, [{"n": 2}, {"n": 3}]) == 2
    assert emit_rows(channel, pa.table({"n": [4]})) == 1
    assert estream.emit("readings", [], folder=tmp_path) == 0
    assert estream.emit("readings", {"n": 5}, folder=tmp_path) == 1
    assert [value for block in channel.read() for value in block.rows["n"].to_pylist()] == [1, 2, 3, 4, 5]


def test_a_channel_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    find_channel(tmp_path, "readings", "n int")
    with pytest.raises(EStreamError, match=r"there is no channel 'reading' in .*; did you mean 'readings'\?"):
        find_channel(tmp_path, "reading")
    with pytest.raises(EStreamError, match=r"'\.\./secret' is no name of a channel"):
        find_channel(tmp_path, "../secret")


def test_dead_letters_say_where_from_and_why_and_are_buried_once(tmp_path: Path) -> None:
    letter = DeadLetter("Readings", "part-1.json:7", "column 'n' is int; found the text 'x'", '{"n": "x"}')
    for _ in range(2):
        bury(dead_letters(tmp_path), [letter], writer="fever/Readings", version=3)
    (block,) = dead_letters(tmp_path).read()
    (row,) = block.rows.to_pylist()
    assert (row["source"], row["position"], row["record"]) == ("Readings", "part-1.json:7", '{"n": "x"}')
    assert row["ts"] == datetime.fromtimestamp(block.appended / 1e6, UTC)


def test_text_that_is_no_utf_8_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"n": "\xff"}')
    channel = find_channel(tmp_path, "readings", "n int")
    with path.open(encoding="utf-8") as lines, pytest.raises(EStreamError, match="rows: byte 7 is no UTF-8"):
        emit_json(channel, lines, "rows")


# The command.


def command(folder: Path, *arguments: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "ESTREAM_PATHS__CHANNELS": "channels", **more}
    called = [sys.executable, "-m", "estream", "emit", *arguments]
    return subprocess.run(called, cwd=folder, env=variables, input=given, capture_output=True, text=True, check=False)


def test_the_command_appends_its_argument_or_what_it_is_given(tmp_path: Path) -> None:
    done = command(tmp_path, "readings", '{"n": 1}', "--schema", "n int")
    assert (done.returncode, done.stdout, done.stderr) == (0, "readings: 1 row\n", "")
    done = command(tmp_path, "readings", given="".join(json.dumps({"n": n}) + "\n" for n in (2, 3)))
    assert (done.returncode, done.stdout) == (0, "readings: 2 rows\n")
    assert Channel(tmp_path / "channels" / "readings").latest() == 3


def test_the_command_tells_what_is_wrong_and_appends_nothing(tmp_path: Path) -> None:
    done = command(tmp_path, "readings", '{"n": 1}')
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("there is no channel 'readings' in channels; there are none yet")
    find_channel(tmp_path / "channels", "readings", "n int")
    done = command(tmp_path, "readings", given='{"n": 1}\n{"n": "x"}\n')
    assert (done.returncode, done.stderr) == (2, "<stdin>:2:2: column 'n' is int; found the text 'x'\n")
    (tmp_path / "file").write_text("")
    done = command(tmp_path, "readings", '{"n": 1}', "--schema", "n int", ESTREAM_PATHS__CHANNELS="file")
    assert (done.returncode, done.stderr) == (2, "channel 'readings': cannot write file/readings: Not a directory\n")
    assert Channel(tmp_path / "channels" / "readings").latest() == 0
