"""Expressions as canonical SQL text: equal expressions give equal text, and the text reads back as the expression."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache

from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation
from estream.spec.types import BIGINT, DOUBLE, INT, NULL

_INFIX = {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "<=>"}
_UNITS = (
    (86_400_000_000, "DAY"),
    (3_600_000_000, "HOUR"),
    (60_000_000, "MINUTE"),
    (1_000_000, "SECOND"),
    (1_000, "MILLISECOND"),
    (1, "MICROSECOND"),
)
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def to_text(expression: Expression) -> str:
    """The expression in Spark SQL, with the parentheses it needs and a few that help the eye."""
    match expression:
        case Literal():
            return _literal(expression)
        case Attribute(event, name):
            return identifier(name) if event is None else f"{identifier(event)}.{identifier(name)}"
        case Aggregate(name, operand):
            return f"{name}({'' if operand is None else to_text(operand)})"
        case Operation():
            return _operation(expression)


def identifier(name: str) -> str:
    """The name, in backticks where SQL would read something else."""
    plain = name.isascii() and name.isidentifier() and name.upper() not in _reserved()
    return name if plain else "`" + name.replace("`", "``") + "`"


@cache
def _reserved() -> frozenset[str]:
    from sqlglot.dialects.spark import Spark

    return frozenset(word for words in Spark.Tokenizer.KEYWORDS for word in words.split())


def _inner(expression: Expression) -> str:
    """As an operand: in parentheses unless it is one word or a call."""
    text = to_text(expression)
    infix = isinstance(expression, Operation) and (
        expression.name in _INFIX or expression.name in {"and", "or", "not", "neg", "is_null", "between", "like", "in"}
    )
    signed = isinstance(expression, Literal) and text.startswith("-")
    return f"({text})" if infix or signed else text


def _operation(operation: Operation) -> str:
    name, operands = operation.name, operation.operands
    if name in _INFIX:
        return f"{_inner(operands[0])} {name} {_inner(operands[1])}"
    if name == "cast":
        return f"CAST({to_text(operands[0])} AS {operation.type})"
    if name == "case":
        return _case(operands)
    parts = [_inner(operand) for operand in operands]
    match name:
        case "and" | "or":
            return f" {name.upper()} ".join(parts)
        case "not":
            return f"NOT ({to_text(operands[0])})"
        case "neg":
            return f"-({to_text(operands[0])})"
        case "is_null":
            return f"{parts[0]} IS NULL"
        case "between":
            return f"{parts[0]} BETWEEN {parts[1]} AND {parts[2]}"
        case "in":
            return f"{parts[0]} IN ({', '.join(map(to_text, operands[1:]))})"
        case "like":
            return f"{parts[0]} LIKE {parts[1]}" + (f" ESCAPE {parts[2]}" if len(parts) > 2 else "")
    return f"{name}({', '.join(map(to_text, operands))})"


def _case(operands: tuple[Expression, ...]) -> str:
    branches = (
        f"WHEN {to_text(test)} THEN {to_text(value)}"
        for test, value in zip(operands[:-1:2], operands[1:-1:2], strict=True)
    )
    return f"CASE {' '.join(branches)} ELSE {to_text(operands[-1])} END"


def _literal(literal: Literal) -> str:
    value, name = literal.value, literal.type.name
    if value is None:
        return "NULL" if literal.type == NULL else f"CAST(NULL AS {literal.type})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + "".join(_ESCAPES.get(character, character) for character in value) + "'"
    if name == "interval":
        return _interval(int(value))
    if name == "timestamp":
        return f"TIMESTAMP '{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value):%Y-%m-%d %H:%M:%S.%f}Z'"
    if name == "date":
        return f"DATE '{date(1970, 1, 1) + timedelta(days=value)}'"
    return _number(literal, value)


def _number(literal: Literal, value: float) -> str:
    natural = DOUBLE if isinstance(value, float) else INT if -(2**31) <= value < 2**31 else BIGINT
    return repr(value) if literal.type == natural else f"CAST({value!r} AS {literal.type})"


def _interval(microseconds: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if microseconds % size == 0)
    return f"INTERVAL '{microseconds // size}' {unit}"
