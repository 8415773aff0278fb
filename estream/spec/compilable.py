"""What of an expression can be compiled to machine code: composite masks and predicates run inside the kernel.

There a text is an exact code: equal texts have equal codes, and codes have no order and no letters.
"""

from __future__ import annotations

from estream.errors import Problem
from estream.spec.expression import Aggregate, Expression, Literal, Operation, walk
from estream.spec.expression_text import to_text
from estream.text import Text

_BY_CODE = {"=", "<>", "<=>", "in", "is_null", "case", "coalesce", "and", "or", "not"}


def refusals(
    expression: Expression,
    text: Text,
    subject: str = "expression",
    over: str = "several events",
    hint: str = "put it into the mask of a primitive event",
) -> list[Problem]:
    """A located problem for each part of a typed expression that does not compile; `over` is what it is asked of."""
    problems = []
    for part in walk(expression):
        reason = _reason(part, over)
        if reason is not None:
            start, end = part.span
            message = f"{subject} has '{to_text(part)}': {reason}"
            problems.append(text.problem(message, start, end - start, hint))
    return problems


def _reason(part: Expression, over: str) -> str | None:
    if isinstance(part, Aggregate):
        return _aggregate_reason(part, over)
    if not isinstance(part, Operation):
        return None
    kinds = {operand.type.name for operand in part.operands}
    if part.name not in _BY_CODE and ("string" in kinds or part.type.name == "string"):
        return f"over {over}, text can be compared with =, <> and IN only"
    if part.name == "round" and part.type.name in ("float", "double") and _scale(part) > 0:
        return f"over {over}, round has no second operand"
    return None


def _aggregate_reason(aggregate: Aggregate, over: str) -> str | None:
    if aggregate.name == "collect":
        return "a list cannot be compared"
    if aggregate.name in ("min", "max") and aggregate.type.name == "string":
        return f"over {over}, text has no {aggregate.name}"
    return None


def _scale(operation: Operation) -> int:
    scale = operation.operands[1] if len(operation.operands) > 1 else None
    return int(scale.value or 0) if isinstance(scale, Literal) else 0
