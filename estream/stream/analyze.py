"""What Spark itself says of the SQL queries of a CEQ file: it only analyses them, over empty streams."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping

from pyspark.errors import AnalysisException, ParseException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from estream.errors import Problem
from estream.spec.checked import Checked, CheckedQuery
from estream.spec.model import Query
from estream.spec.types import DataType
from estream.text import Text


def local_session() -> SparkSession:
    """A small session, enough to analyse with."""
    builder = SparkSession.builder.master("local[1]").appName("estream check")
    conf: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
    }
    session: SparkSession = builder.config(map=conf).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    # PySpark logs each error it raises, JVM stack and all; ours are told as problems.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    return session


def analyze(checked: Checked, session: SparkSession) -> list[Problem]:
    """Spark's errors at the place of their query, and where its columns differ from those `check` inferred."""
    known = set(_tables(checked, session))
    problems: list[Problem] = []
    for query in checked.queries.values():
        if query.kind != "sql":
            known |= _declare(query.name, _types(query), session, query.time)
        elif known.issuperset(query.reads):
            frame, found = _ask(query, session)
            problems += found
            if frame is not None:
                frame.createOrReplaceTempView(query.name)
                known.add(query.name)
    return problems


def _tables(checked: Checked, session: SparkSession) -> Iterator[str]:
    for name, table in checked.ceq.tables.items():
        if table.columns is not None:
            columns = ", ".join(f"cast(null AS {kind}) AS `{column}`" for column, kind in table.columns.items())
            session.sql(f"SELECT {columns}").createOrReplaceTempView(name)
            yield name


def _types(query: CheckedQuery) -> Mapping[str, str] | None:
    if not all(kind.is_known for kind in query.columns.values()):
        return None
    return {name: str(kind) for name, kind in query.columns.items()}


def _declare(name: str, types: Mapping[str, str] | None, session: SparkSession, time: str | None) -> set[str]:
    """An empty stream of these columns under this name; a stream with a type only Spark knows cannot be declared."""
    if types is None:
        return set()
    columns = [f"cast(null AS {kind}) AS `{column}`" for column, kind in types.items()]
    frame = session.readStream.format("rate").load().selectExpr(*columns)
    if time is not None and types.get(time) == "timestamp":
        frame = frame.withWatermark(time, "0 seconds")
    frame.createOrReplaceTempView(name)
    return {name}


def _ask(query: CheckedQuery, session: SparkSession) -> tuple[DataFrame | None, list[Problem]]:
    sql = _sql(query)
    try:
        frame = session.sql(str(sql))
        return frame, _differences(query, sql, frame.schema)
    except (AnalysisException, ParseException) as error:
        return None, [_located(query, sql, error)]


def _sql(query: CheckedQuery) -> Text:
    if not isinstance(query.spec, Query) or query.spec.sql is None:
        raise TypeError(f"query {query.name!r} has no SQL")
    return query.spec.sql


def _located(query: CheckedQuery, sql: Text, error: PySparkException) -> Problem:
    """Spark's first sentence, at the fragment of SQL that it names."""
    sentence = str(error).strip().splitlines()[0].partition(" SQLSTATE")[0]
    message = re.sub(r"^\[[A-Z_.]+\] ", "", sentence).rstrip(".; ")
    text = f"query '{query.name}': Spark says: {message}"
    for context in error.getQueryContext():
        start, stop = context.startIndex(), context.stopIndex()
        if 0 <= start <= stop < len(sql):
            return sql.problem(text, start, stop - start + 1)
    return sql.problem(text)


def _differences(query: CheckedQuery, sql: Text, schema: StructType) -> list[Problem]:
    found = {field.name: field.dataType.simpleString() for field in schema.fields}
    if list(found) != list(query.columns):
        names = f"Spark gives the columns {', '.join(found)}; check found {', '.join(query.columns)}"
        return [sql.problem(f"query '{query.name}': {names}", severity="warning")]
    return [
        sql.problem(
            f"query '{query.name}': Spark gives '{name}' the type {found[name]}; check found {kind}", severity="warning"
        )
        for name, kind in query.columns.items()
        if kind.is_known and not _same(kind, found[name])
    ]


def _same(kind: DataType, found: str) -> bool:
    """Decimals take part as doubles, whatever their precision; fields of a struct are Spark's to know."""
    return found.startswith(kind.name) if kind.name in ("decimal", "struct") else found == str(kind)
