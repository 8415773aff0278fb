"""What a query's SQL gives, without asking Spark: its output columns and their types, what it reads, what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from estream.errors import EStreamError, Problem
from estream.spec.checked import Columns
from estream.text import Text


@dataclass(frozen=True, slots=True)
class Relation:
    """Something SQL can read: a stream, a query or a table. Columns are None where they cannot be known."""

    columns: Columns | None
    keys: tuple[str, ...] = ()
    """What tells the rows of an aggregate apart: its group keys and window."""
    static: bool = False


@dataclass(frozen=True, slots=True)
class Inferred:
    """What a query gives. Columns are None where they follow from something that is itself unknown or wrong."""

    columns: Columns | None
    reads: tuple[str, ...] = ()
    stateful: bool = False
    keys: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def infer(sql: Text, tables: Mapping[str, Relation]) -> Inferred:
    """The output of one SELECT over the tables; every problem stands at its place in the file."""
    # sqlglot takes a noticeable part of a cold start: a file without SQL does without it.
    from estream.spec.sql_scope import Scopes
    from estream.spec.sql_syntax import parse_query, refusals

    try:
        tree = parse_query(sql)
        refused = refusals(sql, tree)
        scopes = Scopes(sql, tables)
        relation = scopes.query(tree)
    except EStreamError as error:
        return Inferred(None, problems=error.problems)
    except RecursionError:
        return Inferred(None, problems=(sql.problem("the SQL is nested too deeply"),))
    problems = [*refused, *scopes.problems]
    if relation.static and not problems:
        problems.append(sql.problem("the SQL reads no stream, so it never gives a row; name one after FROM"))
    return Inferred(relation.columns, tuple(scopes.reads), scopes.stateful, relation.keys, tuple(problems))


def table_names(sql: Text) -> list[str]:
    """The names that the SQL reads, as it spells them; none if it cannot be read."""
    from sqlglot import exp

    from estream.spec.sql_syntax import parse_query

    try:
        tree = parse_query(sql)
    except EStreamError:
        return []
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    return list(dict.fromkeys(table.name for table in tree.find_all(exp.Table) if table.name.lower() not in own))
