"""The SQL of a query as a tree, or why it is none: one SELECT, nothing that writes, runs code or reads files."""

from __future__ import annotations

import difflib
import itertools
import logging
import re
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from estream.errors import EStreamError, Problem
from estream.text import Text

# sqlglot logs what it falls back on; here every such statement is a located problem already.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

LONGEST: Final = 20_000
DEEPEST: Final = 40
"""More nested parentheses than any reader follows; keeps the recursive parser far from Python's limit."""

_OPENING: Final = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN}
_CLOSING: Final = {TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.R_PAREN}
_QUOTED: Final = re.compile(
    r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|(?P<open>['\"`]|/\*)", re.DOTALL
)
"""Quotes and comments; `open` are those that never end."""

_GAP: Final = r"(?:`|\s|/\*.*?\*/|--[^\n]*\n)*"
"""What may stand between a function's name and its bracket."""
# Where the parser here and Spark's read a text differently, one could hide code from the checks in what looks like a
# comment or a quote. So what they read differently may not stand in SQL at all, and Java not even in quotes.
_READ_DIFFERENTLY: Final = (
    (
        re.compile(r"--[^\n]*\\\r?\n"),
        "a comment cannot end with a backslash: Spark takes the next line for a part of it",
    ),
    (re.compile(r"\{#"), "'{#' cannot stand here: Spark knows no such comments"),
    (re.compile(rf"(?is)\bidentifier{_GAP}\("), "IDENTIFIER cannot be used here: write the name itself"),
)
_JAVA_CALL: Final = re.compile(rf"(?is)\b(?:java_method|(?:try_)?reflect){_GAP}\(")
_REFUSED_FUNCTIONS: Final = {
    **dict.fromkeys(("java_method", "reflect", "try_reflect"), "calls Java code"),
    **dict.fromkeys(("read_files", "read_kafka", "read_pubsub", "read_kinesis", "cloud_files"), "reads other data"),
    **dict.fromkeys(("http_request", "ai_query", "remote_query"), "calls another system"),
    **dict.fromkeys(("secret", "try_secret", "list_secrets"), "reads secrets"),
    **dict.fromkeys(("from_protobuf", "to_protobuf"), "reads a file of descriptors"),
    **dict.fromkeys(
        ("input_file_name", "input_file_block_start", "input_file_block_length"), "tells of files, not of rows"
    ),
    **dict.fromkeys(("current_user", "session_user", "user"), "tells who runs the query, not of rows"),
    **dict.fromkeys(("raise_error", "assert_true"), "would stop the stream"),
}
_CHANGING_FUNCTIONS: Final = (
    *("rand", "random", "randn", "uuid", "shuffle", "randstr", "uniform", "monotonically_increasing_id", "now"),
    *("spark_partition_id",),
    *("current_timestamp", "current_date", "curdate", "localtimestamp", "unix_timestamp"),
)
_REFUSED_CLAUSES: Final[dict[type[exp.Expr], str]] = {
    exp.Order: "ORDER BY: a stream has no end to sort by; leave it out",
    exp.Sort: "SORT BY: a stream has no end to sort by; leave it out",
    exp.Cluster: "CLUSTER BY: EStream places the rows; leave it out",
    exp.Distribute: "DISTRIBUTE BY: EStream places the rows; leave it out",
    exp.Limit: "LIMIT: a stream has no first rows; leave it out",
    exp.Offset: "OFFSET: a stream has no first rows; leave it out",
    exp.Qualify: "QUALIFY: window functions do not run on streams; use `window:` or a pattern",
    exp.Window: "OVER: window functions do not run on streams; use `window:`, `modify:` or a pattern",
    exp.Pivot: "PIVOT: not for streams; use sum(CASE WHEN ... END) per column",
    exp.TableSample: "TABLESAMPLE: a sample is another one each time; use `WHERE pmod(hash(id), 10) = 0`",
    exp.QueryTransform: "TRANSFORM: it runs a program; use a Python action in a rule",
    exp.Placeholder: "a parameter: write the value, or ${NAME} of the environment",
    exp.Parameter: "a parameter: write the value, or ${NAME} of the environment",
    exp.Hint: "a hint: EStream plans the query; leave it out",
    exp.Version: "AS OF: a stream has no versions; leave it out",
    exp.Into: "INTO: a query only reads; use `publish:` to give its rows a name",
    exp.Lock: "FOR UPDATE: a query only reads; leave it out",
}


def parse_query(sql: Text) -> exp.Query:
    """The tree of one SELECT, WITH or UNION; EStreamError says all that is wrong with the text."""
    if len(sql) > LONGEST:
        raise EStreamError([sql.problem(f"the SQL has {len(sql):,} characters; at most {LONGEST:,} are read")])
    found = _tokens(sql)
    _check_tokens(sql, found)
    _check_reading(sql)
    try:
        (tree,) = sqlglot.Dialect.get_or_raise("spark").parser().parse(_with_window_calls(found), str(sql))
    except ParseError as error:
        raise EStreamError([_syntax_problem(sql, error)]) from None
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        # The parser meets text it was not written for with whatever its Python code raises.
        raise EStreamError([sql.problem("the SQL cannot be read")]) from None
    if not isinstance(tree, exp.Query):
        raise EStreamError([sql.problem("the SQL is no query; write SELECT ... FROM ...")])
    return tree


def refusals(sql: Text, tree: exp.Query) -> list[Problem]:
    """What may not stand in a continuous query, though it is SQL; functions that break determinism are warnings."""
    problems = []
    for node in tree.walk(prune=lambda found: isinstance(found, exp.Window | exp.QueryTransform)):
        refused = _REFUSED_CLAUSES.get(type(node))
        if refused is not None:
            what, _, advice = refused.partition(": ")
            place = _keyword(sql, what, offset_of(node))
            problems.append(sql.problem(f"{what} cannot be used here: {advice}", place))
        elif isinstance(node, exp.Func) and not isinstance(node.parent, exp.Table):
            problems += _function_problems(sql, node)
    hidden = None if any("Java" in problem.message for problem in problems) else _JAVA_CALL.search(sql)
    if hidden:
        problems.append(
            sql.problem("functions that call Java code may not stand in quotes or comments", hidden.start())
        )
    return problems


def offset_of(node: exp.Expr) -> int | None:
    """Where a node begins in the SQL, by the first of its parts that knows."""
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts) if starts else None


def _keyword(sql: str, clause: str, offset: int | None) -> int | None:
    """Where a clause's own word stands, before its first part."""
    found = sql.upper().rfind(clause.split()[0], 0, offset)
    return found if found >= 0 and clause.isupper() else offset


def function_name(sql: str, node: exp.Func) -> str:
    """A function's name as the user wrote it, in lower case."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if "start" in node.meta:
        return sql[node.meta["start"] : node.meta["end"] + 1].lower()
    return node.sql_name().lower()


def _function_problems(sql: Text, node: exp.Func) -> list[Problem]:
    name = function_name(sql, node)
    offset = offset_of(node)
    if name in _REFUSED_FUNCTIONS:
        return [sql.problem(f"function {name} is not allowed: it {_REFUSED_FUNCTIONS[name]}", offset, len(name))]
    # unix_timestamp(ts) converts; only without an argument does it read the clock.
    if name in _CHANGING_FUNCTIONS and not (name == "unix_timestamp" and (node.this or node.expressions)):
        message = f"{name}() gives another value each time, so a replay may find other events; use a column"
        return [sql.problem(message, offset, len(name), severity="warning")]
    return []


def _tokens(sql: Text) -> list[Token]:
    try:
        return sqlglot.tokenize(str(sql), dialect="spark")
    except TokenError:
        open_ = next((found.start() for found in _QUOTED.finditer(sql) if found["open"]), None)
        message = "the SQL cannot be read" if open_ is None else "a quote or comment is not closed"
        raise EStreamError([sql.problem(message, open_)]) from None


def _with_window_calls(found: list[Token]) -> list[Token]:
    """`window(` is Spark's function; right after GROUP BY the parser would take it for the clause of that name."""
    for token, following in itertools.pairwise(found):
        if token.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
            token.token_type = TokenType.VAR
    return found


def _check_tokens(sql: Text, found: list[Token]) -> None:
    """Refuses what the parser would let through or answer unclearly."""
    if not found:
        raise EStreamError([sql.problem("the SQL is empty; write SELECT ... FROM ...")])
    first = found[0]
    if first.token_type not in _OPENING:
        near = difflib.get_close_matches(first.text.upper(), ["SELECT", "WITH"], 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        message = f"a query begins with SELECT or WITH, not {first.text!r}{hint}"
        raise EStreamError([sql.problem(message, first.start, len(first.text))])
    depth = 0
    for token, following in zip(found, [*found[1:], None], strict=True):
        if token.token_type is TokenType.SEMICOLON:
            message = "only one query stands here; leave ';' out"
            raise EStreamError([sql.problem(message, token.start)])
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth > DEEPEST:
            raise EStreamError([sql.problem(f"the SQL is nested more than {DEEPEST} deep", token.start)])
        dangling = token.token_type in (TokenType.SELECT, TokenType.COMMA, TokenType.GROUP_BY)
        if dangling and (following is None or following.token_type in _CLOSING):
            message = f"nothing stands after {token.text!r}"
            raise EStreamError([sql.problem(message, token.start, len(token.text))])


def _check_reading(sql: Text) -> None:
    """Refuses what Spark would read otherwise."""
    for sign, message in _READ_DIFFERENTLY:
        found = sign.search(sql)
        if found:
            raise EStreamError([sql.problem(message, found.start(), len(found[0].rstrip()))])


def _syntax_problem(sql: Text, error: ParseError) -> Problem:
    detail = error.errors[0] if error.errors else {}
    found = str(detail.get("highlight") or "")
    lines = sql.split("\n")
    line, column = int(detail.get("line") or 1), int(detail.get("col") or 1)
    offset = sum(len(text) + 1 for text in lines[: line - 1]) + column - len(found)
    offset = max(0, min(offset, len(sql)))
    return sql.problem(_in_words(str(detail.get("description") or ""), found), offset, max(len(found), 1))


def _in_words(description: str, found: str) -> str:
    if description.startswith(("Expecting ", "Expected ")):
        wanted = description.split(" ", 1)[1].split(" but ")[0]
        return f"expected {wanted if ' ' in wanted else repr(wanted)} at {found!r}"
    if description.startswith("Required keyword"):
        return f"something is missing next to {found!r}"
    return f"{found!r} is not expected here" if found else "the SQL ends too early"
