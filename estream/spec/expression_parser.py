"""Expressions from their Spark SQL text: sqlglot reads it, an allow-list lets the known parts through."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from estream.errors import EStreamError, Problem
from estream.spec import expression_literals as literals
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation, Span
from estream.spec.expression_dialect import read_sql
from estream.spec.functions import AGGREGATES, ALIASES, FUNCTIONS, NAMES, REWRITTEN
from estream.spec.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
)
from estream.suggest import did_you_mean
from estream.text import Text

MAX_DEPTH = 100
"""Operations in operations: whoever walks the tree may recurse."""

ALLOWED = "columns, constants, operators, CASE, CAST and the functions of the language"

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_LOGIC: dict[type[exp.Expr], str] = {exp.And: "and", exp.Or: "or"}
_CASTS = {
    exp.DataType.Type.TINYINT: TINYINT,
    exp.DataType.Type.SMALLINT: SMALLINT,
    exp.DataType.Type.INT: INT,
    exp.DataType.Type.BIGINT: BIGINT,
    exp.DataType.Type.FLOAT: FLOAT,
    exp.DataType.Type.DOUBLE: DOUBLE,
    exp.DataType.Type.TEXT: STRING,
    exp.DataType.Type.BOOLEAN: BOOLEAN,
    exp.DataType.Type.DATE: DATE,
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMP,
}
_NOTES = {
    exp.Select: "a query",
    exp.Subquery: "a subquery",
    exp.Exists: "a subquery",
    exp.Lambda: "a lambda",
    exp.JSONExtract: "a lambda or '->'",
    exp.Window: "a window function",
    exp.Star: "'*'",
    exp.Placeholder: "a parameter",
    exp.Parameter: "a parameter",
    exp.Bracket: "an element of an array",
    exp.Dot: "a field of a struct",
    exp.Tuple: "a list of values",
    exp.Alias: "a name after AS",
    exp.RegexpLike: "RLIKE",
    exp.Concat: "several texts side by side",
    exp.DPipe: "'||'",
    exp.IntDiv: "DIV",
}
_HINTS = {
    exp.Concat: r"for a quote in a text write \'",
    exp.DPipe: "use concat(...)",
    exp.IntDiv: "use cast(a / b as bigint)",
    exp.Mod: "use %",
}


def parse_expression(text: Text, subject: str = "expression") -> Expression:
    """The untyped tree of an expression, every node with its span.

    EStreamError has a located problem for each part that is wrong; `subject` begins their messages.
    """
    tree = read_sql(text, subject)
    conversion = _Conversion(text, subject)
    expression = conversion.convert(tree)
    if conversion.problems or expression is None:
        raise EStreamError(conversion.problems)
    return expression


class _Conversion:
    """One text on its way from sqlglot's tree to ours; what is not in a table here is refused."""

    def __init__(self, text: Text, subject: str) -> None:
        self.text, self.subject = text, subject
        self.problems: list[Problem] = []
        self.depth = 0

    def convert(self, node: exp.Expr) -> Expression | None:
        """Our node for sqlglot's, or None after a problem was noted."""
        if self.depth >= MAX_DEPTH:
            return self.refuse(node, f"is nested more than {MAX_DEPTH} deep")
        self.depth += 1
        try:
            for kind, make in _MAKERS:
                if isinstance(node, kind):
                    return make(self, node)
            return self.not_allowed(node)
        except ValueError as error:
            return self.refuse(node, f"is wrong: {error}")
        finally:
            self.depth -= 1

    def refuse(self, node: exp.Expr, message: str, hint: str | None = None) -> Expression | None:
        """Notes the problem; None stands for the expression that is not there."""
        start, end = _span(node, len(self.text))
        self.problems.append(self.text.problem(f"{self.subject} {message}", start, end - start, hint))
        return None

    def not_allowed(self, node: exp.Expr) -> Expression | None:
        found = next((name for kind, name in _NOTES.items() if isinstance(node, kind)), node.key.upper())
        hint = next((hint for kind, hint in _HINTS.items() if isinstance(node, kind)), None)
        return self.refuse(node, f"uses {found}; allowed are {ALLOWED}", hint)

    def only(self, node: exp.Expr, *known: str) -> bool:
        """True when the node has no parts but the known ones: sqlglot reads much more than we mean."""
        more = [name for name, value in node.args.items() if value and name not in known and name != "_type"]
        if more:
            self.refuse(node, f"uses {node.key.upper()} with {', '.join(more).upper()}; allowed are {ALLOWED}")
        return not more

    def operation(self, name: str, node: exp.Expr, *operands: exp.Expr) -> Operation | None:
        converted = [self.convert(operand) for operand in operands]
        known = tuple(operand for operand in converted if operand is not None)
        return (
            Operation(name, known, span=_cover(node, known, len(self.text))) if len(known) == len(converted) else None
        )

    def column(self, node: exp.Expr) -> Expression | None:
        if node.args.get("db") or not isinstance(node.this, exp.Identifier):
            return self.refuse(node, "uses a name of more than two parts; write name or Event.name")
        return Attribute(node.args["table"].name if node.args.get("table") else None, node.name, span=self.span(node))

    def literal(self, node: exp.Expr) -> Expression:
        span = self.span(node)
        return Literal(node.name, STRING, span) if node.args["is_string"] else literals.number(node.name, span)

    def constant(self, node: exp.Expr) -> Expression:
        return Literal(node.this, BOOLEAN, self.span(node)) if isinstance(node, exp.Boolean) else _null(self.span(node))

    def paren(self, node: exp.Expr) -> Expression | None:
        return self.convert(node.this) if self.only(node, "this") else None

    def negation(self, node: exp.Expr) -> Expression | None:
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.args["is_string"]:
            start, end = self.span(inner)
            return literals.number(f"-{inner.name}", (self.text.rfind("-", 0, start), end))
        return self.operation("neg", node, inner)

    def logical_not(self, node: exp.Expr) -> Expression | None:
        return self.operation("not", node, node.this)

    def logic(self, node: exp.Expr) -> Expression | None:
        name = _LOGIC[type(node)]
        parts, waiting = [], [node]
        while waiting:
            part = waiting.pop()
            inner = part.unnest()
            if type(inner) is type(node):
                waiting += (inner.expression, inner.this)
            else:
                parts.append(part)
        return self.operation(name, node, *parts)

    def arithmetic(self, node: exp.Expr) -> Expression | None:
        return self.operation(_ARITHMETIC[type(node)], node, node.this, node.expression)

    def comparison(self, node: exp.Expr) -> Expression | None:
        if any(type(side) in _COMPARISONS for side in (node.this, node.expression)):
            return self.refuse(node, "compares a comparison; put one of them in parentheses")
        same = self.operation(_COMPARISONS[type(node)], node, node.this, node.expression)
        return _not(same) if same and isinstance(node, exp.NullSafeNEQ) else same

    def identity(self, node: exp.Expr) -> Expression | None:
        if isinstance(node.expression, exp.Null):
            return self.operation("is_null", node, node.this)
        if isinstance(node.expression, exp.Boolean):
            return self.operation("<=>", node, node.this, node.expression)
        return self.not_allowed(node)

    def between(self, node: exp.Expr) -> Expression | None:
        if not self.only(node, "this", "low", "high"):
            return None
        return self.operation("between", node, node.this, node.args["low"], node.args["high"])

    def membership(self, node: exp.Expr) -> Expression | None:
        if node.args.get("query"):
            return self.not_allowed(node.args["query"])
        if not self.only(node, "this", "expressions"):
            return None
        if not node.expressions:
            return self.refuse(node, "has an empty list after IN")
        return self.operation("in", node, node.this, *node.expressions)

    def like(self, node: exp.Expr) -> Expression | None:
        escape = node.expression if isinstance(node, exp.Escape) else None
        inner = node.this if escape else node
        if not isinstance(inner, exp.Like) or not self.only(inner, "this", "expression", "negate"):
            return None if isinstance(inner, exp.Like) else self.not_allowed(inner)
        constants = [inner.expression, *([escape] if escape else [])]
        if not all(isinstance(part, exp.Literal) and part.args["is_string"] for part in constants):
            return self.refuse(inner, "has LIKE with a pattern that is not a constant text")
        character = escape.name if escape else "\\"
        literals.check_like(inner.expression.name, character)
        found = self.operation("like", inner, inner.this, *(constants if character != "\\" else constants[:1]))
        return _not(found) if found and inner.args.get("negate") else found

    def case(self, node: exp.Expr) -> Expression | None:
        parts: list[exp.Expr] = []
        for branch in node.args["ifs"]:
            test = _equal(node.this, branch.this) if node.this else branch.this
            parts += (test, branch.args["true"])
        return self.operation("case", node, *parts, node.args.get("default") or exp.Null())

    def cast(self, node: exp.Expr) -> Expression | None:
        if node.args.get("safe"):
            return self.refuse(node, "uses try_cast; use cast, which gives null for what it cannot cast")
        target = _CASTS.get(node.args["to"].this)
        if target is None or node.args["to"].expressions:
            names = ", ".join(map(str, _CASTS.values()))
            return self.refuse(node, f"casts to {node.args['to'].sql('spark').lower()}; allowed are {names}")
        if not self.only(node, "this", "to"):
            return None
        if type(node) is exp.Cast and isinstance(node.this, exp.Literal) and target in (DATE, TIMESTAMP):
            return (literals.timestamp if target is TIMESTAMP else literals.day)(node.this.name, self.span(node))
        start, end = self.span(node)
        literals.check_suffixed(self.text[start:end], self.text[:start].endswith("-"))
        inner = self.convert(node.this)
        return inner and Operation("cast", (inner,), target, (start, end))

    def interval(self, node: exp.Expr) -> Expression | None:
        unit = node.args.get("unit")
        if not isinstance(node.this, exp.Literal):
            return self.refuse(node, "has an INTERVAL that is not constant")
        first, last = (unit.this.name, unit.expression.name) if isinstance(unit, exp.IntervalSpan) else (unit, None)
        name = first.name if isinstance(first, exp.Expr) else first
        return literals.interval(node.this.name, name, last, self.span(node))

    def call(self, node: exp.Expr) -> Expression | None:
        written = node.name.lower()
        name = ALIASES.get(written, written)
        count = len(node.expressions)
        if not isinstance(node.this, str) or not self.only(node, "this", "expressions"):
            return None if isinstance(node.this, str) else self.not_allowed(node)
        if name in AGGREGATES:
            return self.aggregate(name, node)
        if name in REWRITTEN:
            return self.rewritten(name, node) if count == REWRITTEN[name] else self.wrong_count(node, REWRITTEN[name])
        function = FUNCTIONS.get(name)
        if function is None:
            names = (*NAMES, *AGGREGATES)
            known = did_you_mean(written, names) or f"the functions are {', '.join(names)}"
            return self.refuse(node, f"calls '{node.name}', which is not a function of the language; {known}")
        if count < function.least or (function.most is not None and count > function.most):
            return self.wrong_count(node, function.least, function.most)
        return self.operation(name, node, *node.expressions)

    def wrong_count(self, node: exp.Expr, least: int, most: int | None = -1) -> Expression | None:
        right = f"{least} or more" if most is None else str(least) if most in (-1, least) else f"{least} to {most}"
        return self.refuse(node, f"gives '{node.name}' {len(node.expressions)} operands; it takes {right}")

    def aggregate(self, name: str, node: exp.Expr) -> Expression | None:
        if name == "count" and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Star):
            return Aggregate(name, None, span=self.span(node))
        if len(node.expressions) > 1 or (not node.expressions and name != "count"):
            return self.wrong_count(node, 1)
        made = self.operation(name, node, *node.expressions)
        return made and Aggregate(name, made.operands[0] if made.operands else None, span=made.span)

    def rewritten(self, name: str, node: exp.Expr) -> Expression | None:
        parts = node.expressions
        if name == "if":
            return self.operation("case", node, *parts)
        if name in ("isnull", "isnotnull"):
            found = self.operation("is_null", node, *parts)
            return _not(found) if found and name == "isnotnull" else found
        return self.operation("case", node, _equal(parts[0], parts[1]), exp.Null(), parts[0])

    def span(self, node: exp.Expr) -> Span:
        return _span(node, len(self.text))


def _null(span: Span) -> Literal:
    return Literal(None, NULL, span)


def _equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.EQ(this=exp.Paren(this=left), expression=exp.Paren(this=right))


def _not(expression: Expression) -> Operation:
    return Operation("not", (expression,), span=expression.span)


def _span(node: exp.Expr, length: int) -> Span:
    """From the first to the last token that sqlglot kept a place for, the whole text when it kept none."""
    places = [part.meta for part in node.walk() if "start" in part.meta]
    if not places:
        return 0, length
    return min(place["start"] for place in places), max(place["end"] for place in places) + 1


def _cover(node: exp.Expr, operands: tuple[Expression, ...], length: int) -> Span:
    spans = [operand.span for operand in operands]
    if "start" in node.meta:
        spans.append((node.meta["start"], node.meta["end"] + 1))
    return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0, length)


_Maker = Callable[[_Conversion, exp.Expr], Expression | None]
_MAKERS: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], _Maker], ...] = (
    (exp.Column, _Conversion.column),
    (exp.Literal, _Conversion.literal),
    ((exp.Boolean, exp.Null), _Conversion.constant),
    (exp.Paren, _Conversion.paren),
    (exp.Neg, _Conversion.negation),
    (exp.Not, _Conversion.logical_not),
    (tuple(_LOGIC), _Conversion.logic),
    (tuple(_ARITHMETIC), _Conversion.arithmetic),
    (tuple(_COMPARISONS), _Conversion.comparison),
    (exp.Is, _Conversion.identity),
    (exp.Between, _Conversion.between),
    (exp.In, _Conversion.membership),
    ((exp.Like, exp.Escape), _Conversion.like),
    (exp.Case, _Conversion.case),
    (exp.Cast, _Conversion.cast),
    (exp.Interval, _Conversion.interval),
    (exp.Anonymous, _Conversion.call),
)
