"""What Spark says of SQL queries, at their place in the file."""

from pyspark.sql import SparkSession

from estream.spec.checked import Checked, CheckedQuery, Columns
from estream.spec.reader import parse_ceq
from estream.spec.types import BIGINT, DOUBLE, INT, STRING, TIMESTAMP
from estream.stream.analyze import analyze

HEAD = """\
version: 1
streams:
  S: {source: {format: json}, schema: {ts: timestamp, a: int, b: string}, time: ts}
tables:
  T: {source: {format: csv}, schema: {b: string, c: double}}
queries:
"""
S: Columns = {"ts": TIMESTAMP, "a": INT, "b": STRING}


def said(spark: SparkSession, written: str, **queries: tuple[tuple[str, ...], Columns]) -> list[str]:
    """What Spark says of the queries as written; for each what it reads and the columns that were inferred."""
    ceq = parse_ceq(HEAD + written, "f.yaml", {}).ceq
    stream = CheckedQuery("S", "stream", ceq.streams["S"], (), S, "ts", False)
    checked = {
        name: CheckedQuery(name, "sql", ceq.queries[name], reads, columns, "ts", False)
        for name, (reads, columns) in queries.items()
    }
    return [str(problem) for problem in analyze(Checked(ceq, {"S": stream, **checked}, {}, {}), spark.newSession())]


def test_right_queries_over_streams_tables_and_each_other(spark: SparkSession) -> None:
    written = """\
  Joined: {sql: "SELECT s.ts, s.a, t.c FROM S s JOIN T t ON s.b = t.b"}
  Counted: {sql: "SELECT a, count(*) AS n, window.end AS ts FROM Joined GROUP BY a, window(ts, '1 minute')"}
"""
    joined = ("S", "T"), {"ts": TIMESTAMP, "a": INT, "c": DOUBLE}
    counted = ("Joined",), {"a": INT, "n": BIGINT, "ts": TIMESTAMP}
    assert said(spark, written, Joined=joined, Counted=counted) == []


def test_an_error_stands_at_the_words_that_spark_names(spark: SparkSession) -> None:
    written = """\
  Bad:
    sql: |
      SELECT ts,
        nope(a) AS x FROM S
"""
    (problem,) = said(spark, written, Bad=(("S",), {}))
    assert problem.startswith("f.yaml:10:9: query 'Bad': Spark says: Cannot resolve routine `nope`")
    assert "\n" not in problem


def test_a_syntax_error_is_one_sentence(spark: SparkSession) -> None:
    (problem,) = said(spark, "  Bad: {sql: SELEC ts}\n", Bad=((), {}))
    assert problem == "f.yaml:7:14: query 'Bad': Spark says: Syntax error at or near 'SELEC'"


def test_what_reads_a_wrong_query_is_not_asked(spark: SparkSession) -> None:
    written = "  Bad: {sql: SELECT nope FROM S}\n  Next: {sql: SELECT nope FROM Bad}\n"
    (problem,) = said(spark, written, Bad=(("S",), {}), Next=(("Bad",), {}))
    assert "query 'Bad'" in problem


def test_another_type_or_another_column_than_inferred_is_a_warning(spark: SparkSession) -> None:
    written = "  Q: {sql: 'SELECT ts, a + 1L AS n FROM S'}\n"
    assert said(spark, written, Q=(("S",), {"ts": TIMESTAMP, "n": INT})) == [
        "f.yaml:7:12: warning: query 'Q': Spark gives 'n' the type bigint; check found int"
    ]
    assert said(spark, written, Q=(("S",), {"ts": TIMESTAMP})) == [
        "f.yaml:7:12: warning: query 'Q': Spark gives the columns ts, n; check found ts"
    ]
