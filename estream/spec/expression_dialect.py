"""Spark SQL's grammar as sqlglot reads it, cut down to plain calls so that the allow-list sees what was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from estream.errors import EStreamError, Problem
from estream.text import Text

MAX_LENGTH = 10_000
MAX_NESTING = 40
"""Brackets in brackets: sqlglot reads them by recursion."""

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}

_UNTOKENIZED = "a quote is not closed; text stands in '...', names with special characters stand in `...`"


def _placed(make: Callable[[], exp.Expr]) -> Callable[[Any, Token], exp.Expr]:
    return lambda parser, token: parser.expression(make()).update_positions(token)


class EStreamExpressions(Spark):
    """Spark's dialect in which a function's call keeps the name and the place that were written."""

    class Parser(SparkParser):
        """Knows no functions but casts and `case`: every other call is anonymous."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar = {
            name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name in ("CAST", "TRY_CAST")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        PRIMARY_PARSERS: ClassVar = {
            **SparkParser.PRIMARY_PARSERS,
            TokenType.NULL: _placed(exp.Null),
            TokenType.TRUE: _placed(lambda: exp.Boolean(this=True)),
            TokenType.FALSE: _placed(lambda: exp.Boolean(this=False)),
        }

        def raise_error(self, message: str, token: Token | None = None) -> None:
            """Keeps the place of what is wrong, which sqlglot's own error gives by line only."""
            at = token or self._curr or self._prev
            raise _Misread(message, at.start if at else 0, at.end + 1 if at else 0)


class _Misread(Exception):
    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.start, self.end = start, end


def read_sql(text: Text, subject: str) -> exp.Expr:
    """sqlglot's tree of one expression; EStreamError when the text is none."""
    dialect = EStreamExpressions()
    if len(text) > MAX_LENGTH:
        raise EStreamError([text.problem(f"{subject} has {len(text)} characters; {MAX_LENGTH} are allowed")])
    try:
        tokens = dialect.tokenize(str(text))
    except SqlglotError:
        raise EStreamError([text.problem(f"{subject} cannot be read: {_UNTOKENIZED}")]) from None
    problem = _refused_tokens(tokens, text, subject)
    if problem is not None:
        raise EStreamError([problem])
    try:
        trees = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, str(text))
    except _Misread as error:
        raise EStreamError([_misread(error, text, subject)]) from None
    except RecursionError:
        raise EStreamError([text.problem(f"{subject} is nested too deeply")]) from None
    if len(trees) != 1 or trees[0] is None:
        raise EStreamError([text.problem(f"{subject} has no expression")])
    tree: exp.Expr = trees[0]
    return tree


def _refused_tokens(tokens: list[Token], text: Text, subject: str) -> Problem | None:
    if not tokens:
        return text.problem(f"{subject} is empty; write a Spark SQL expression")
    depth = 0
    for token in tokens:
        size = token.end + 1 - token.start
        if token.comments:
            return text.problem(f"{subject} has a comment; write it outside the SQL text", token.start, size)
        if token.token_type is TokenType.SEMICOLON:
            return text.problem(f"{subject} has ';'; one expression is allowed", token.start, size)
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth > MAX_NESTING:
            return text.problem(f"{subject} is nested more than {MAX_NESTING} deep", token.start, size)
    return None


def _misread(error: _Misread, text: Text, subject: str) -> Problem:
    found = text[error.start : error.end]
    if error.end >= len(text.rstrip()) and not str(error).startswith("Invalid expression"):
        return text.problem(f"{subject} ends too early, after '{found}'", error.start, len(found))
    return text.problem(f"{subject} is not a Spark SQL expression from '{found}' on", error.start, len(found))
