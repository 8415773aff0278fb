"""Source of a function over scalars, for numba to compile: what the kernel asks of a mask, a condition or a predicate.

Every value travels with its null flag. A function takes `x, x_null` for each attribute and aggregate, and one code for
each constant text, and gives `(value, is_null)`. A null's value is zero and a null truth value is False, so that a mask
holds exactly when the first of the two is true. Types: integers, `float` and `double` by their widths, decimals as
`double`, booleans, dates as int32 days, timestamps and intervals as int64 microseconds, text as an int64 code that the
caller gives: equal texts have equal codes, different ones different codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from estream.errors import EStreamError
from estream.event import scalar_templates as templates
from estream.spec.compilable import refusals
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation, operands_of
from estream.spec.expression_text import to_text
from estream.spec.types import BOOLEAN, DataType
from estream.text import Text

PREAMBLE = "import math\n\nimport numpy as np\n"
"""What the source expects in its module."""

Argument: TypeAlias = Attribute | Aggregate | Literal
_Pair: TypeAlias = tuple[str, str]


def arguments_of(expression: Expression) -> tuple[Argument, ...]:
    """What the caller gives: each attribute, aggregate and constant text once, in the order of the text."""
    found: dict[Argument, None] = {}
    waiting: list[Expression] = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Attribute | Aggregate) or (isinstance(part, Literal) and isinstance(part.value, str)):
            found[part] = None
        else:
            waiting += reversed(operands_of(part))
    return tuple(found)


def to_source(expression: Expression, name: str, arguments: Mapping[Argument, str]) -> str:
    """The source of `def name(...)`, with the parameters in the order of `arguments`, for a typed expression."""
    refused = refusals(expression, Text(to_text(expression)))
    if refused:
        raise EStreamError(refused)
    parameters = [
        argument if isinstance(key, Literal) else f"{argument}, {argument}_null" for key, argument in arguments.items()
    ]
    function = _Function(arguments)
    value, null = function.emit(expression)
    body = "\n".join(f"    {line}" for line in (*function.lines, f"return {value}, {null}"))
    return f"def {name}({', '.join(parameters)}):\n{body}\n"


class _Function:
    """The lines of one function: a value and a null flag for each part, parts before the whole."""

    def __init__(self, arguments: Mapping[Argument, str]) -> None:
        self.arguments = arguments
        self.lines: list[str] = []
        self.known: dict[Expression, _Pair] = {}

    def emit(self, expression: Expression) -> _Pair:
        """The names of the expression's value and null flag; equal parts are worked out once."""
        if expression not in self.known:
            self.known[expression] = self.emitted(expression)
        return self.known[expression]

    def emitted(self, expression: Expression) -> _Pair:
        if not expression.type.is_known:
            raise ValueError(f"'{to_text(expression)}' has no type: check it against the columns first")
        match expression:
            case Literal():
                return self.literal(expression)
            case Attribute() | Aggregate():
                given = self.arguments[expression]
                zero = templates.zero(expression.type)
                value = f"{zero} if {given}_null else {templates.typed(expression.type, given)}"
                return self.assign(value, f"bool({given}_null)")
            case Operation():
                return self.operation(expression, [self.emit(operand) for operand in expression.operands])

    def literal(self, literal: Literal) -> _Pair:
        if literal.value is None:
            return templates.zero(literal.type), "True"
        shown = self.arguments[literal] if isinstance(literal.value, str) else repr(literal.value)
        return self.assign(templates.typed(literal.type, shown), None)[0], "False"

    def assign(self, value: str, null: str | None) -> _Pair:
        """New names for a value and its null flag; the flag first, as the value may look at it."""
        number = len(self.lines)
        if null is not None:
            self.lines.append(f"n{number} = {null}")
        self.lines.append(f"v{number} = {value.replace('@', f'n{number}')}")
        return f"v{number}", f"n{number}"

    def operation(self, operation: Operation, operands: Sequence[_Pair]) -> _Pair:
        kind = operation.operands[0].type
        match operation.name:
            case "and" | "or":
                return self.logic(operation.name, operands)
            case "not":
                ((value, null),) = operands
                return self.assign(f"not ({value} or {null})", null)
            case "is_null":
                return self.assign(operands[0][1], "False")
            case "isnan":
                return self.assign(f"not {operands[0][1]} and {operands[0][0]} != {operands[0][0]}", "False")
            case "<=>":
                (left, left_null), (right, right_null) = operands
                same = templates.compare("=", kind, left, right)
                return self.assign(f"({left_null} == {right_null}) and ({left_null} or ({same}))", "False")
            case "between":
                tested, low, high = operands
                return self.logic(
                    "and", [self.compare(">=", kind, tested, low), self.compare("<=", kind, tested, high)]
                )
            case "in":
                tested, *items = operands
                return self.logic("or", [self.compare("=", kind, tested, item) for item in items])
            case "case":
                return self.case(operands)
            case "coalesce":
                return self.chosen([(f"not {null}", (value, null)) for value, null in operands[:-1]], operands[-1])
            case "greatest" | "least":
                return self.extreme(">" if operation.name == "greatest" else "<", operation.type, operands)
        if operation.name in templates.COMPARISONS:
            return self.compare(operation.name, kind, operands[0], operands[1])
        return self.call(operation, operands)

    def logic(self, name: str, operands: Sequence[_Pair]) -> _Pair:
        (left, left_null), *others = operands
        for right, right_null in others:
            if name == "and":
                open_ = f"({left_null} and ({right_null} or {right})) or ({right_null} and {left})"
                left, left_null = self.assign(f"{left} and {right}", open_)
            else:
                open_ = f"({left_null} or {right_null}) and not ({left} or {right})"
                left, left_null = self.assign(f"{left} or {right}", open_)
        return left, left_null

    def compare(self, name: str, kind: DataType, left: _Pair, right: _Pair) -> _Pair:
        truth = templates.compare(name, kind, left[0], right[0])
        return self.assign(f"(not @) and ({truth})", f"{left[1]} or {right[1]}")

    def case(self, operands: Sequence[_Pair]) -> _Pair:
        *branches, otherwise = operands
        tests = [value for value, _ in branches[::2]]
        return self.chosen(list(zip(tests, branches[1::2], strict=True)), otherwise)

    def chosen(self, branches: Sequence[tuple[str, _Pair]], otherwise: _Pair) -> _Pair:
        value = "".join(f"{pair[0]} if {test} else " for test, pair in branches) + otherwise[0]
        null = "".join(f"{pair[1]} if {test} else " for test, pair in branches) + otherwise[1]
        return self.assign(value, null)

    def extreme(self, name: str, kind: DataType, operands: Sequence[_Pair]) -> _Pair:
        best, *others = operands
        for other in others:
            better = f"not {other[1]} and ({best[1]} or ({templates.compare(name, kind, other[0], best[0])}))"
            taken = self.assign(better, None)[0]
            best = self.chosen([(taken, other)], best)
        return best

    def call(self, operation: Operation, operands: Sequence[_Pair]) -> _Pair:
        value, more = templates.call(operation, [value for value, _ in operands])
        null = " or ".join((*(null for _, null in operands), *([more] if more else [])))
        guarded = f"{templates.zero(operation.type)} if @ else {templates.typed(operation.type, value)}"
        if operation.type == BOOLEAN:
            guarded = f"(not @) and ({value})"
        return self.assign(guarded, null)
