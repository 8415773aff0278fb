"""How Spark brings two types together, and the casts EStream knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from estream.spec import expression_literals as literals
from estream.spec.expression import Expression, Literal, Operation
from estream.spec.expression_text import to_text
from estream.spec.types import DOUBLE, FRACTIONS, INTEGERS, DataType

_WIDTH = (*INTEGERS, *FRACTIONS)
_NUMBERS = frozenset((*INTEGERS, "float", "double"))
_CASTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(INTEGERS, _NUMBERS | {"boolean", "string", "timestamp"}),
    "float": _NUMBERS | {"boolean"},
    "double": _NUMBERS | {"boolean"},
    "decimal": _NUMBERS | {"boolean"},
    "boolean": _NUMBERS | {"string"},
    "string": frozenset({"string", "int", "bigint", "double"}),
    "date": frozenset({"timestamp"}),
    "timestamp": frozenset({"date", "bigint", "double"}),
    "void": _NUMBERS | {"boolean", "string", "timestamp", "date"},
}


class Mismatch(Exception):
    """Operands that do not go together; the message is a verb and its objects."""


def castable(source: DataType, target: DataType) -> bool:
    """Whether EStream knows the cast; a type that only Spark knows may be cast to all."""
    return source == target or not source.is_known or target.name in _CASTS.get(source.name, ())


def cast(expression: Expression, target: DataType) -> Expression:
    """The expression as `target`; constants are converted at once, unknown types stay as they are."""
    if expression.type == target or not expression.type.is_known or not target.is_known:
        return expression
    if isinstance(expression, Literal):
        converted = _converted(expression, target)
        if converted is not None:
            return converted
    return Operation("cast", (expression,), target, expression.span)


def _converted(literal: Literal, target: DataType) -> Literal | None:
    value = literal.value
    if value is None:
        return replace(literal, type=target)
    if isinstance(value, bool) or not isinstance(value, int) or not literal.type.is_integer:
        return None
    if target == DOUBLE:
        return replace(literal, value=float(value), type=target)
    return replace(literal, type=target) if target.name == "bigint" else None


def as_number(expression: Expression, verb: str) -> Expression:
    """The operand of a calculation: a number or null, decimals as double."""
    if not expression.type.is_known or expression.type.name == "void":
        return expression
    if not expression.type.is_number:
        raise Mismatch(f"{verb} {expression.type} '{to_text(expression)}'")
    return plain(expression)


def plain(expression: Expression) -> Expression:
    """The expression itself, or a decimal as double."""
    return cast(expression, DOUBLE) if expression.type.name == "decimal" else expression


def same_type(operands: Sequence[Expression], verb: str) -> tuple[Expression, ...]:
    """The operands cast to the one type that Spark finds for them; Mismatch when there is none.

    A constant text beside a date or a timestamp is read as one.
    """
    operands = _read_times([plain(operand) for operand in operands])
    if any(not operand.type.is_known for operand in operands):
        return tuple(operands)
    common = operands[0]
    for operand in operands[1:]:
        wider = _wider(common.type, operand.type)
        if wider is None:
            raise Mismatch(f"{verb} {common.type} '{to_text(common)}' with {operand.type} '{to_text(operand)}'")
        common = common if wider == common.type else operand if wider == operand.type else replace(operand, type=wider)
    return tuple(cast(operand, common.type) for operand in operands)


def _wider(left: DataType, right: DataType) -> DataType | None:
    if left == right or right.name == "void":
        return left
    if left.name == "void":
        return right
    if left.is_number and right.is_number:
        return max(left, right, key=lambda kind: _WIDTH.index(kind.name))
    if {left.name, right.name} == {"date", "timestamp"}:
        return left if left.name == "timestamp" else right
    return None


def _read_times(operands: Sequence[Expression]) -> list[Expression]:
    kinds = {operand.type.name for operand in operands}
    if not kinds & {"timestamp", "date"}:
        return list(operands)
    return [_read_time(operand, "timestamp" in kinds) for operand in operands]


def _read_time(operand: Expression, with_clock: bool) -> Expression:
    if not isinstance(operand, Literal) or not isinstance(operand.value, str):
        return operand
    try:
        return (literals.timestamp if with_clock else literals.day)(operand.value, operand.span)
    except ValueError as error:
        raise Mismatch(f"compares a time with text: {error};") from None
