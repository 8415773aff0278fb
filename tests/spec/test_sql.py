"""What a query's SQL gives is known without Spark; what is not known is never called wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.spec.sql import Relation, infer, table_names
from estream.spec.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP
from estream.text import Text

TABLES = {
    "Cars": Relation({"ts": TIMESTAMP, "car": BIGINT, "seg": INT, "speed": DOUBLE, "plate": STRING}),
    "Counts": Relation({"seg": INT, "n": BIGINT, "ts": TIMESTAMP}, keys=("seg", "ts")),
    "Roads": Relation({"seg": INT, "road": STRING}, static=True),
    "Broken": Relation(None),
}


def columns(sql: str) -> str:
    """Output columns and types, of SQL that is right."""
    inferred = infer(Text(sql), TABLES)
    assert inferred.problems == ()
    return "?" if inferred.columns is None else ", ".join(f"{name} {kind}" for name, kind in inferred.columns.items())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM Cars", "ts timestamp, car bigint, seg int, speed double, plate string"),
        ("select CAR, c.speed from cars c", "CAR bigint, speed double"),
        ("SELECT * EXCEPT (plate, speed) FROM Cars", "ts timestamp, car bigint, seg int"),
        ("SELECT c.car, r.* FROM Cars c JOIN Roads r ON c.seg = r.seg", "car bigint, seg int, road string"),
        ("SELECT seg, road, car FROM Cars JOIN Roads USING (seg)", "seg int, road string, car bigint"),
        ("SELECT seg + car AS a, seg / 2 AS b, speed > 3 AS c FROM Cars", "a bigint, b double, c boolean"),
        ("SELECT speed * 1.5 AS a, seg * 1.5 AS b FROM Cars", "a double, b unknown"),
        ("SELECT ts - ts AS a, my_function(car) AS b FROM Cars", "a unknown, b unknown"),
        ("SELECT cast(my_function(car) AS int) AS a FROM Cars", "a int"),
        ("WITH fast AS (SELECT * FROM Cars WHERE speed > 9) SELECT car FROM fast", "car bigint"),
        ("SELECT s.x FROM (SELECT car AS x FROM Cars) s", "x bigint"),
        ("SELECT ts, car FROM Cars UNION ALL SELECT ts, seg FROM Cars", "ts timestamp, car unknown"),
        ("SELECT count(*) AS n, window.end AS ts FROM Cars GROUP BY window(ts, '1 minute')", "n bigint, ts timestamp"),
        ("SELECT session_window.start AS ts FROM Cars GROUP BY session_window(ts, '1 minute')", "ts timestamp"),
        ("SELECT car, piece FROM Cars LATERAL VIEW explode(split(plate, '-')) p AS piece", "car bigint, piece unknown"),
        ("SELECT filter(array(1), v -> v > seg) AS a FROM Cars", "a array<int>"),
        ("SELECT anything, x.y AS z FROM Broken", "anything unknown, z unknown"),
        ("SELECT * FROM Broken", "?"),
        ("SELECT car FROM Cars c WHERE EXISTS (SELECT 1 FROM Roads r WHERE r.seg = c.seg)", "car bigint"),
        ("SELECT seg, speed AS v FROM Cars WHERE ts > TIMESTAMP '2026-01-01 00:00:00'", "seg int, v double"),
    ],
)
def test_output_columns(sql: str, expected: str) -> None:
    assert columns(sql) == expected


@pytest.mark.parametrize(
    ("sql", "stateful"),
    [
        ("SELECT * FROM Cars WHERE speed > 3", False),
        ("SELECT * FROM Cars JOIN Roads USING (seg)", False),
        ("SELECT a.ts FROM Cars a JOIN Cars b ON a.car = b.car", True),
        ("SELECT DISTINCT car, ts FROM Cars", True),
        ("SELECT ts FROM Cars UNION SELECT ts FROM Cars", True),
        ("SELECT ts FROM Cars UNION ALL SELECT ts FROM Cars", False),
        ("SELECT max(speed) AS top, window.end AS ts FROM Cars GROUP BY window(ts, '1 minute')", True),
    ],
)
def test_what_keeps_state(sql: str, stateful: bool) -> None:
    assert infer(Text(sql), TABLES).stateful is stateful


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT seg AS s, count(*), window.end AS ts FROM Cars GROUP BY seg, window(ts, '1 minute')", ("s", "ts")),
        ("SELECT count(*) AS n, window.end AS ts FROM Cars GROUP BY seg, window(ts, '1 minute')", ()),
        ("SELECT n, seg, ts FROM Counts WHERE n > 3", ("seg", "ts")),
        ("SELECT * FROM Counts", ("seg", "ts")),
        ("SELECT n, ts FROM Counts", ()),
    ],
)
def test_rows_of_an_aggregate_are_known_by_their_keys_if_all_come_out(sql: str, keys: tuple[str, ...]) -> None:
    assert infer(Text(sql), TABLES).keys == keys


def test_reads_are_spelt_as_declared() -> None:
    assert infer(Text("SELECT ts FROM cars JOIN ROADS USING (seg)"), TABLES).reads == ("Cars", "Roads")
    assert table_names(Text("WITH a AS (SELECT * FROM Cars) SELECT * FROM a, b")) == ["b", "Cars"]


def test_nesting_without_end_is_told() -> None:
    deep = infer(Text("SELECT " + "(" * 5000 + "1" + ")" * 5000 + " AS a FROM Cars"), TABLES)
    assert [problem.message for problem in deep.problems] == ["the SQL is nested more than 40 deep"]
    chain = infer(Text("SELECT ts FROM Cars" + " UNION ALL SELECT ts FROM Cars" * 600), TABLES)
    assert all(problem.message for problem in chain.problems)


JAVA = 'reflect("java.lang.System", "getenv", "HOME")'


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (f"SELECT ts, {JAVA} AS x FROM Cars", "function reflect is not allowed: it calls Java code"),
        ("SELECT ts, `java_method`('a') AS x FROM Cars", "function java_method is not allowed: it calls Java code"),
        (
            "SELECT ts, system.builtin.reflect('a') AS x FROM Cars",
            "function reflect is not allowed: it calls Java code",
        ),
        (
            "SELECT ts, IDENTIFIER('reflect')('a', 'b') AS x FROM Cars",
            "IDENTIFIER cannot be used here: write the name itself",
        ),
        ("SELECT ts FROM IDENTIFIER /**/ ('Cars')", "IDENTIFIER cannot be used here: write the name itself"),
        # For Spark the second line is a comment, so that the third is code; for others it is a quote that hides it.
        (
            f"SELECT ts, -- \\\n '\n {JAVA} AS x --' AS x\n FROM Cars",
            "a comment cannot end with a backslash: Spark takes the next line for a part of it",
        ),
        (f"SELECT ts, '{JAVA}' AS x FROM Cars", "functions that call Java code may not stand in quotes or comments"),
        ("SELECT ts, 1 AS a {# b #} FROM Cars", "'{#' cannot stand here: Spark knows no such comments"),
        ("SELECT ts FROM Cars VERSION AS OF 1", "AS OF cannot be used here: a stream has no versions; leave it out"),
        (
            "SELECT ts FROM Cars, LATERAL range(1000000000)",
            "FROM reads streams, queries and tables of the file, no functions",
        ),
        (
            "SELECT ts FROM Cars WHERE seg IN (SELECT seg FROM csv.`/etc/passwd`)",
            "'csv./etc/passwd' is no name of the file; declare it under `tables:` and use its name",
        ),
        (
            "SELECT ts FROM `csv./etc/passwd`",
            "unknown stream, query or table 'csv./etc/passwd'; the file has Cars, Counts, Roads, Broken",
        ),
        (
            "SELECT ts, input_file_name() AS f FROM Cars",
            "function input_file_name is not allowed: it tells of files, not of rows",
        ),
        (
            "FROM Cars SELECT TRANSFORM(ts) USING 'cat /etc/passwd' AS (x)",
            "TRANSFORM cannot be used here: it runs a program; use a Python action in a rule",
        ),
    ],
)
def test_sql_runs_no_code_and_reads_no_files(sql: str, message: str) -> None:
    assert [problem.message for problem in infer(Text(sql), TABLES).problems] == [message]


VOCABULARY = """
    SELECT FROM WHERE GROUP BY Cars Roads ts car seg window ( ) , * . AS a 1 'x' ; JOIN ON = USING WITH UNION ALL NOT IN
    CASE WHEN END cast OVER HAVING count sum [ ] -> { } : ? ` " -- /* interval LATERAL VIEW explode VALUES
"""
WORDS = st.sampled_from(VOCABULARY.split())


@given(st.lists(WORDS, max_size=25))
def test_no_sql_gives_a_traceback(words: list[str]) -> None:
    for text in (" ".join(words), "SELECT ts " + " ".join(words), "SELECT ts FROM Cars " + " ".join(words)):
        for problem in infer(Text(text), TABLES).problems:
            assert problem.place.line == 1
