"""Reads event expressions, the `when` of composite events (docs/semantics.md, section 2); every mistake is located."""

from __future__ import annotations

from functools import cache
from typing import Any

from lark import Lark, Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args
from lark.visitors import Transformer_NonRecursive

from estream.duration import duration
from estream.errors import EStreamError, Problem
from estream.hidden import HiddenNumber
from estream.spec.event_expression import Apply, EventExpression, Name, Operator, Span, depth
from estream.text import Text

MAX_LENGTH = 10_000
MAX_DEPTH = 100
LEAST_TIMES, MOST_TIMES = 2, 1_000_000

GRAMMAR = r"""
?either: both | either _OR both -> either
?both: sequence | both _AND sequence -> both
?sequence: delayed | sequence _SEMICOLON delayed -> sequence
?delayed: operand | delayed _PLUS duration -> plus
?operand: NAME -> name
    | _OPEN either _CLOSE
    | _NOT _OPEN either _CLOSE _OPEN_BRACKET either _COMMA either _CLOSE_BRACKET -> negation
    | APERIODIC _OPEN either _COMMA either _COMMA either _CLOSE -> aperiodic
    | PERIODIC _OPEN either _COMMA duration _COMMA either _CLOSE -> periodic
    | _ABSENT _OPEN either _COMMA either _COMMA duration _CLOSE -> absent
    | _TIMES _OPEN NUMBER _COMMA either _CLOSE -> times
duration: NUMBER NAME

_OR.2: /or(?!\w)/i
_AND.2: /and(?!\w)/i
_NOT.2: /not(?!\w)/i
_ABSENT.2: /absent(?!\w)/i
_TIMES.2: /times(?!\w)/i
APERIODIC.2: /A\*?(?=\()/
PERIODIC.2: /P\*?(?=\()/
NAME: /[A-Za-z_][A-Za-z0-9_]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
_SEMICOLON: ";"
_PLUS: "+"
_COMMA: ","
_OPEN: "("
_CLOSE: ")"
_OPEN_BRACKET: "["
_CLOSE_BRACKET: "]"
%ignore /\s+/
"""

_SIGNS = {
    "_OR": "'or'",
    "_AND": "'and'",
    "_SEMICOLON": "';'",
    "_PLUS": "'+'",
    "_COMMA": "','",
    "_OPEN": "'('",
    "_CLOSE": "')'",
    "_OPEN_BRACKET": "'['",
    "_CLOSE_BRACKET": "']'",
    "$END": "the end",
}
_OPERATORS = "or and ; not absent times A A* P P* +"


def parse_event(text: Text) -> EventExpression:
    """The tree of an event expression; EStreamError says where it is wrong and what was expected there."""
    if len(text) > MAX_LENGTH:
        message = f"the event expression has {len(text)} characters; at most {MAX_LENGTH} are allowed"
        raise EStreamError([text.problem(message, hint="name its parts as events of their own")])
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as unexpected:
        raise EStreamError([_unexpected(text, unexpected)]) from None
    builder = _Builder(text)
    expression: EventExpression = builder.transform(tree)
    if not builder.problems and depth(expression) > MAX_DEPTH:
        message = f"the event expression is nested deeper than {MAX_DEPTH} operators"
        builder.problems.append(text.problem(message, hint="name its parts as events of their own"))
    if builder.problems:
        raise EStreamError(builder.problems)
    return expression


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, start="either", parser="lalr", lexer="basic", propagate_positions=True)


@v_args(meta=True)
class _Builder(Transformer_NonRecursive[Token, Any]):
    """Makes our tree from lark's and collects what the grammar cannot see."""

    def __init__(self, text: Text) -> None:
        super().__init__()
        self.text = text
        self.problems: list[Problem] = []

    def _wrong(self, message: str, span: Span) -> None:
        self.problems.append(self.text.problem(message, span[0], span[1] - span[0]))

    def _number(self, value: int, written: str) -> int:
        """The number, hidden if a variable gave it."""
        shown = self.text.hide(written)
        return value if shown == written else HiddenNumber(value, shown)

    def name(self, meta: Any, parts: list[Any]) -> Name:
        return Name(str(parts[0]), _span(meta))

    def duration(self, meta: Any, parts: list[Any]) -> int:
        try:
            return self._number(duration(str(parts[0]), str(parts[1])), f"{parts[0]} {parts[1]}")
        except ValueError as error:
            self._wrong(str(error), _span(meta))
            return 1

    def either(self, meta: Any, parts: list[Any]) -> Apply:
        return Apply("or", tuple(parts), span=_span(meta))

    def both(self, meta: Any, parts: list[Any]) -> Apply:
        return Apply("and", tuple(parts), span=_span(meta))

    def sequence(self, meta: Any, parts: list[Any]) -> Apply:
        return Apply(";", tuple(parts), span=_span(meta))

    def plus(self, meta: Any, parts: list[Any]) -> Apply:
        return Apply("+", (parts[0],), duration=parts[1], span=_span(meta))

    def negation(self, meta: Any, parts: list[Any]) -> Apply:
        negated, initiator, terminator = parts
        return Apply("not", (initiator, negated, terminator), span=_span(meta))

    def aperiodic(self, meta: Any, parts: list[Any]) -> Apply:
        operator: Operator = "A" if parts[0] == "A" else "A*"
        return Apply(operator, tuple(parts[1:]), span=_span(meta))

    def periodic(self, meta: Any, parts: list[Any]) -> Apply:
        operator: Operator = "P" if parts[0] == "P" else "P*"
        return Apply(operator, (parts[1], parts[3]), duration=parts[2], span=_span(meta))

    def absent(self, meta: Any, parts: list[Any]) -> Apply:
        return Apply("absent", (parts[0], parts[1]), duration=parts[2], span=_span(meta))

    def times(self, meta: Any, parts: list[Any]) -> Apply:
        number: Token = parts[0]
        count = float(number)
        if not count.is_integer() or not LEAST_TIMES <= count <= MOST_TIMES:
            start = number.start_pos or 0
            message = f"times({number[:20]}, ...) is wrong; write a whole number from {LEAST_TIMES} to {MOST_TIMES}"
            self._wrong(message, (start, start + len(number)))
            count = LEAST_TIMES
        return Apply("times", (parts[1],), count=self._number(int(count), str(number)), span=_span(meta))


def _span(meta: Any) -> Span:
    return meta.start_pos, meta.end_pos


def _unexpected(text: Text, unexpected: UnexpectedInput) -> Problem:
    """What stands there and what was expected, in a user's words."""
    if isinstance(unexpected, UnexpectedCharacters):
        offset = unexpected.pos_in_stream or 0
        message = f"an event expression has no {text[offset]!r}; it has names, durations, brackets and {_OPERATORS}"
        return text.problem(message, offset)
    if not isinstance(unexpected, UnexpectedToken):
        return text.problem("the event expression cannot be read", unexpected.pos_in_stream)
    token = unexpected.token
    before = text[: token.start_pos].rstrip() if token.type != "$END" else text.rstrip()
    if token.type == "$END":
        found, offset, length = "the expression ends" if before else "the expression is empty", len(before), 1
    else:
        found, offset, length = f"found '{token}'", token.start_pos or 0, len(token)
    message = f"{found}, expected {_expected(unexpected.accepts, before)}"
    return text.problem(message, offset, length, _hint(token, before))


def _expected(accepts: set[str], before: str) -> str:
    """The words for the set of terminals that would have been right after `before`."""
    if "_NOT" in accepts:
        return "an event's name, '(' or an operator"
    if accepts == {"NAME"}:
        return "a unit of time, like s, min or h"
    if accepts == {"NUMBER"}:
        is_count = before.endswith("(")
        return "a whole number from 2 on" if is_count else "a duration, like 10 min"
    if "_OR" in accepts:  # the parser may have closed the operand already; in the text every infix may still follow
        accepts = accepts | {"_AND", "_SEMICOLON", "_PLUS"}
    *signs, last = [sign for name, sign in _SIGNS.items() if name in accepts]
    return f"{', '.join(signs)} or {last}" if signs else last


def _hint(token: Token, before: str) -> str | None:
    if token.type != "_OPEN":
        return None
    word = before.rsplit(maxsplit=1)[-1] if before else ""
    if word in ("A", "P", "A*", "P*"):
        return f"write '{word}(' without a space"
    return f"the operators are {_OPERATORS}"
