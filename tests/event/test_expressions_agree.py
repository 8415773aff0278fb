"""Whatever expression a user writes, the batch evaluation and the compiled function give the same for every row."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from estream.event.evaluate import evaluate
from estream.event.scalar import to_source
from estream.spec.compilable import refusals
from estream.spec.expression import Attribute, Literal, Operation
from estream.spec.types import BOOLEAN, STRING
from estream.text import Text
from tests.reference.expressions import COLUMNS, TABLE, Codes, compiled_results, plain, python_values, same, typed

Texts = st.SearchStrategy[str]

WHOLE = ("a", "h", "i", "j", "l", "m")
REAL = ("f", "x", "y", "c")


def joined(template: str, *parts: Texts) -> Texts:
    """Texts made of the parts; every operation is in brackets, so that it means what was drawn."""
    return st.tuples(*parts).map(lambda drawn: f"({template.format(*drawn)})")


def numbers(truths: Texts, inner: Texts) -> Texts:
    """Numbers of numbers and truth values."""
    pairs = [joined(f"{{}} {operator} {{}}", inner, inner) for operator in ("+", "-", "*", "/", "%")]
    calls = [joined(f"{name}({{}})", inner) for name in ("-", "abs", "floor", "ceil", "sign", "round", "sqrt")]
    choices = [joined(f"{name}({{}}, {{}})", inner, inner) for name in ("coalesce", "greatest", "least", "nullif")]
    casts = [joined(f"cast({{}} as {kind})", inner) for kind in ("int", "bigint", "smallint", "double", "float")]
    branch = joined("case when {} then {} else {} end", truths, inner, inner)
    return st.one_of(*pairs, *calls, *choices, *casts, branch)


def truths_of(number: Texts, inner: Texts) -> Texts:
    """Truth values of numbers, texts, times and truth values."""
    compared = [
        joined(f"{{}} {operator} {{}}", number, number) for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>")
    ]
    logic = [joined("{} and {}", inner, inner), joined("{} or {}", inner, inner), joined("not {}", inner)]
    tests = [joined("{} is null", number), joined("{} is not null", inner), joined("{} <=> {}", inner, inner)]
    ranges = [joined("{} between {} and {}", *[number] * 3), joined("{} in ({}, {}, null)", *[number] * 3)]
    return st.one_of(*compared, *logic, *tests, *ranges, joined("if({}, {}, {})", *[inner] * 3))


NUMBER = st.one_of(
    st.sampled_from([*WHOLE, *REAL, "null"]),
    st.integers(0, 2**31).map(str),
    st.floats(0, 1e6, allow_subnormal=False).map(lambda value: f"{value!r}D"),
    st.sampled_from(["year(t)", "dayofweek(d)", "hour(w)", "unix_micros(t)", "unix_seconds(w)"]),
)
TRUTH = st.sampled_from(["p", "q", "true", "false", "null", "s = u", "s in ('abc', u)", "t < w", "d >= e", "isnan(x)"])
SIMPLE_TRUTHS = st.one_of(TRUTH, truths_of(NUMBER, TRUTH))
NUMBERS = st.recursive(NUMBER, lambda inner: numbers(SIMPLE_TRUTHS, inner), max_leaves=6)
TRUTHS = st.recursive(TRUTH, lambda inner: truths_of(NUMBERS, inner), max_leaves=4)


def differences(text: str, expected: list[Any], found: list[Any]) -> list[str]:
    return [
        f"{text}: row {TABLE.slice(row, 1).to_pylist()[0]}: the batch gives {left!r}, the kernel {right!r}"
        for row, (left, right) in enumerate(zip(expected, found, strict=True))
        if not same(left, right, exact=True)
    ]


@settings(max_examples=25)
@given(st.one_of(NUMBERS, TRUTHS))
def test_batch_and_kernel_give_the_same(text: str) -> None:
    expression = typed(text)
    assert refusals(expression, Text(text)) == []
    codes = Codes()
    expected = python_values(evaluate(expression, {(None, name): TABLE[name] for name in COLUMNS}))
    if expression.type == STRING:
        expected = [None if value is None else codes[value] for value in expected]
    assert differences(text, expected, [plain(value) for value in compiled_results(expression, codes)]) == []


def test_no_text_of_a_user_gets_into_the_source() -> None:
    hostile = "x); __import__('os').system('true'"
    column, constant = Attribute(None, hostile, STRING), Literal(hostile, STRING)
    expression = Operation("=", (column, constant), BOOLEAN)
    source = to_source(expression, "asked", {column: "p0", constant: "p1"})
    assert "import" not in source
    assert source.startswith("def asked(p0, p0_null, p1):")
