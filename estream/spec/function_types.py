"""What functions and aggregates give for the operands they are called with."""

from __future__ import annotations

from dataclasses import replace

from estream.spec.expression import Aggregate, Expression, Literal, Operation
from estream.spec.expression_text import to_text
from estream.spec.functions import FUNCTIONS, Function, Parameter
from estream.spec.type_rules import Mismatch, as_number, cast, plain, same_type
from estream.spec.types import BIGINT, DATE, DOUBLE, INT, INTERVAL, STRING, TIMESTAMP, UNKNOWN, DataType, array_of

MAX_SCALE = 18
_ORDERED = ("boolean", "string", "date", "timestamp", "interval", "void")


def call(operation: Operation) -> Operation:
    """The call with its type and its operands cast to what the function takes; Mismatch when they cannot be."""
    function = FUNCTIONS[operation.name]
    if function.parameters[0] == "same":
        operands = same_type(operation.operands, f"gives {operation.name}")
        if operation.name != "coalesce":
            _require_order(operands[0].type, operation.name)
    else:
        operands = tuple(
            _fitted(operation.name, parameter, operand)
            for parameter, operand in zip(_parameters(function, operation), operation.operands, strict=True)
        )
    if operation.name in ("floor", "ceil"):
        return _whole(operation, operands[0])
    known = all(operand.type.is_known for operand in operands)
    result = function.result or (operands[0].type if known else UNKNOWN)
    return replace(operation, operands=operands, type=result)


def _parameters(function: Function, operation: Operation) -> tuple[Parameter, ...]:
    repeated = function.parameters[-1:] * (len(operation.operands) - len(function.parameters))
    return (function.parameters + repeated)[: len(operation.operands)]


def _fitted(name: str, parameter: Parameter, operand: Expression) -> Expression:
    """The operand as the parameter asks for it."""
    verb, kind = f"gives {name}", operand.type
    if parameter == "scale":
        return _scale(name, operand)
    if not kind.is_known:
        return operand
    if parameter in ("number", "double"):
        number = as_number(operand, verb)
        return cast(number, DOUBLE) if parameter == "double" or number.type.name == "void" else number
    accepted = {
        "text": (("string",), STRING),
        "int": (("tinyint", "smallint", "int"), INT),
        "date": (("date", "timestamp"), kind if kind.name == "timestamp" else DATE),
        "timestamp": (("date", "timestamp"), TIMESTAMP),
    }
    names, target = accepted[parameter]
    if kind.name not in (*names, "void"):
        raise Mismatch(f"{verb} {kind} '{to_text(operand)}'; it takes {' or '.join(names)}")
    return cast(operand, target)


def _scale(name: str, operand: Expression) -> Expression:
    value = operand.value if isinstance(operand, Literal) else None
    if operand.type != INT or not isinstance(value, int) or not 0 <= value <= MAX_SCALE:
        raise Mismatch(f"gives {name} '{to_text(operand)}'; its second operand is a constant from 0 to {MAX_SCALE}")
    return operand


def _whole(operation: Operation, operand: Expression) -> Operation:
    if operand.type.is_integer:
        return Operation("cast", (operand,), BIGINT, operation.span)
    return replace(operation, operands=(cast(operand, DOUBLE),), type=BIGINT)


def _require_order(kind: DataType, name: str) -> None:
    if kind.is_known and not kind.is_number and kind.name not in _ORDERED:
        raise Mismatch(f"gives {name} {kind}, which has no order,")


def aggregate_type(aggregate: Aggregate, operand: Expression) -> Aggregate:
    """The aggregate over a typed operand, with its type; Mismatch when it cannot be made of that type."""
    kind = operand.type
    if aggregate.name in ("count", "approx_count_distinct"):
        return replace(aggregate, operand=operand, type=BIGINT)
    if not kind.is_known:
        return replace(aggregate, operand=operand)
    match aggregate.name:
        case "collect":
            return replace(aggregate, operand=operand, type=array_of(kind))
        case "sum" | "avg":
            number = cast(as_number(operand, f"has {aggregate.name} of"), DOUBLE)
            whole = aggregate.name == "sum" and kind.is_integer
            return replace(aggregate, operand=operand if whole else number, type=BIGINT if whole else DOUBLE)
        case "stddev":
            return replace(aggregate, operand=cast(as_number(operand, "has stddev of"), DOUBLE), type=DOUBLE)
        case "delta":
            return _delta(aggregate, operand)
        case "min" | "max":
            _require_order(kind, aggregate.name)
            return replace(aggregate, operand=plain(operand), type=plain(operand).type)
    return replace(aggregate, operand=operand, type=kind)


def _delta(aggregate: Aggregate, operand: Expression) -> Aggregate:
    if operand.type.name in ("timestamp", "date"):
        return replace(aggregate, operand=cast(operand, TIMESTAMP), type=INTERVAL)
    number = as_number(operand, "has delta of")
    return replace(aggregate, operand=number, type=number.type)
