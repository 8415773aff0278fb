"""Spark, the batch evaluation and the compiled function give the same for every expression and every row."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from estream.event.evaluate import evaluate
from estream.spec.compilable import refusals
from estream.spec.types import STRING
from estream.stream.column import to_column
from estream.text import Text
from tests.reference.expressions import COLUMNS, TABLE, Codes, compiled_results, plain, python_values, same, typed

LOGIC = """
p and q | p or q | not p | p and q or not p | p = q | p <> q | p <=> q | p is null | p is not null | p is true
p is not true | p is false | p is not false | p and null | p or null | not null | null = null | null <=> null | p < q
case when p then 1 end | case when p then 1 when q then 2 else 3 end
case i when 0 then 'zero' when 1 then 'one' end = 'one'
if(p, i, j) | if(p, i, x) | coalesce(p, q) | p in (q, true) | p in (false, null) | (i > 0) = (j > 0) | !p | true | false
"""
NUMBERS = """
i + j | i - j | i * j | i / j | i % j | -i | l + m | l - m | l * m | l / m | l % m | -l | a + a | h * h | a - h | a * i
i + l | i + x | i * 2 | l * 2 | i + 1L | x + y | x - y | x * y | x / y | x % y | -x | f + f | f * x | f + i | f + l
f / 2
f % 2.5 | x % 2 | i % 0 | i / 0 | x / 0 | 7 % i | -7 % i | c + 1 | c * c | c / i | -c | a % 3 | h % a | 1e3 + i
abs(i) | abs(l) | abs(a) | abs(x) | abs(c) | sign(x) | sign(i) | floor(x) | ceil(x) | floor(i) | floor(c) | ceil(f)
sqrt(x) | sqrt(i) | exp(x / 1e10) | ln(x) | log10(x) | ln(l) | power(x, y) | power(i, 2) | power(x, 0.5) | power(1, y)
round(x) | round(y) | round(i) | round(x, 2) | round(f, 1) | round(y, 1) | isnan(x) | isnan(f) | isnan(i / j)
greatest(i, j) | least(i, j) | greatest(x, y) | least(x, y) | greatest(i, l, x) | least(i, null, j) | coalesce(i, j)
coalesce(i, l, 5) | coalesce(x, 0) | nullif(i, 0) | nvl(x, y) | ifnull(l, i) | greatest(p, q) | least(f, x)
isnull(i) | isnotnull(i) | isnull(x) | isnotnull(x)
"""
COMPARISONS = """
i = j | i <> j | i < j | i <= j | i > j | i >= j | i <=> j | x = y | x <> y | x < y | x <= y | x > y | x >= y | x <=> y
x = x | x < x | f = x | f > 1 | i = l | i < x | l > 2147483647 | c > 1 | c = 1.25 | c in (1.25, 0) | a = 127 | a < h
i between 0 and 5 | i not between j and 5 | x between -1 and y | i in (0, 1, null) | i not in (0, 1) | x in (0, y)
i in (j, l)
i = null | i <=> null | i is null | x is null | l = 9223372036854775807 | l = -9223372036854775808 | i = 1.0 | 2.5 > i
"""
CASTS = """
cast(i as bigint) | cast(l as int) | cast(l as smallint) | cast(l as tinyint) | cast(i as double) | cast(l as double)
cast(x as int) | cast(x as bigint) | cast(y as bigint) | cast(y as int) | cast(x as tinyint) | cast(y as smallint)
cast(x as float) | cast(f as double) | cast(f as int) | cast(x as boolean) | cast(i as boolean) | cast(p as int)
cast(p as double) | cast(t as bigint) | cast(t as double) | cast(t as date) | cast(d as timestamp)
cast(i as timestamp)
cast(i as string) | cast(l as string) | cast(p as string) | cast(s as int) | cast(s as bigint) | cast(s as double)
cast(u as string) | cast(c as int) | cast(c as double) | i::bigint | x::int % 7 | cast(null as int) | cast(l as float)
"""
TEXTS = """
s = u | s <> u | s < u | s <= u | s > u | s >= u | s <=> u | s = 'abc' | s in ('abc', 'b', u) | s not in ('abc')
s is null
s between 'a' and 'b' | s like 'a%' | s like '%c' | s like 'a_c' | s not like '%b%' | s like 'a!%c' escape '!'
s like '%'
s like 'x\\\\_y' | s like '' | upper(s) | lower(s) | length(s) | trim(s) | ltrim(s) | rtrim(s) | substring(s, 2)
substring(s, 1, 2)
substring(s, -2) | substring(s, -2, 1) | substring(s, 0, 2) | substring(s, -9, 8) | substring(s, i % 5, 2)
concat(s, u) | concat(s, '-', u)
startswith(s, 'a') | startswith(s, u) | endswith(s, 'c') | contains(s, 'b') | contains(s, u) | coalesce(s, u)
coalesce(s, u, 'none')
if(p, s, u) | if(p, s, null) | nullif(s, 'abc') | greatest(s, u) | least(s, u) | upper(s) = upper(u)
length(concat(s, u)) > 3
case when s = 'abc' then u else s end = 'a' | if(p, s, u) = 'abc' | coalesce(s, 'b') <> 'b' | startswith('abc', u)
concat('a', 'b')
"""
TIMES = """
t = w | t <> w | t < w | t <= w | t > w | t <=> w | t - w | w - t | t + interval 10 minutes
w - interval '1 2:03:04' day to second
interval 1 hour + t | t - w > interval 1 day | t - w <= interval '0' second | -(t - w) | (t - w) + interval 1 week
(t - w) = (w - t)
interval 1 hour 30 minutes = interval 90 minutes | t > timestamp '2000-01-01 00:00:00' | t > '2000-01-01'
t between w and '2030-01-01'
t in (w, timestamp '1970-01-01 00:00:00') | d = e | d < e | d > date '1999-12-31' | d > '1999-12-31' | d < t | d - e
t - d | d in (e)
year(t) | month(t) | day(t) | dayofweek(t) | hour(t) | minute(t) | second(t) | year(d) | month(d) | day(d)
dayofweek(d) | hour(d)
year(w) | month(w) | day(w) | hour(w) | second(w) | unix_seconds(t) | unix_millis(t) | unix_micros(t)
unix_seconds(w) | unix_millis(w)
greatest(t, w) | least(d, e) | coalesce(t, w) | if(p, t, w) | if(p, t, d) | coalesce(d, e)
timestamp '2024-01-01 00:00:00+02:00' | date '2024-01-01'
unix_micros(t) / 1000 | nullif(t, w) | greatest(t - w, w - t) | t is null | date '2024-01-01' = e
interval '5' millisecond
"""
PARTS = (LOGIC, NUMBERS, COMPARISONS, CASTS, TEXTS, TIMES)
EXPRESSIONS = [text.strip() for part in PARTS for text in part.replace("\n", "|").split("|") if text.strip()]


def differences(text: str, expected: list[Any], found: list[Any]) -> list[str]:
    # The last bit of a logarithm, an exponential or a power is the library's own.
    exact = not any(name in text for name in ("exp", "ln", "log10", "power"))
    return [
        f"{text}: row {TABLE.slice(number, 1).to_pylist()[0]}: Spark gives {left!r}, EStream {right!r}"
        for number, (left, right) in enumerate(zip(expected, found, strict=True))
        if not same(left, right, exact)
    ]


@pytest.fixture(scope="module")
def by_spark(spark: Any) -> dict[str, pa.ChunkedArray]:
    """All expressions in one query."""
    frame = spark.createDataFrame(TABLE)
    chosen = [to_column(typed(text), lambda part: frame[part.name]).alias(str(n)) for n, text in enumerate(EXPRESSIONS)]
    result = frame.select(*chosen).toArrow()
    return dict(zip(EXPRESSIONS, result.columns, strict=True))


def test_the_matrix_is_wide() -> None:
    assert len(set(EXPRESSIONS)) == len(EXPRESSIONS) >= 150


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_evaluate_gives_what_spark_gives(text: str, by_spark: dict[str, pa.ChunkedArray]) -> None:
    found = evaluate(typed(text), {(None, name): TABLE[name] for name in COLUMNS})
    spark_column = by_spark[text].combine_chunks()
    assert differences(text, python_values(spark_column), python_values(found)) == []
    assert str(found.type).replace("large_", "") == str(spark_column.type).replace("large_", "")


def compiles(text: str) -> bool:
    return not refusals(typed(text), Text(text))


@pytest.mark.parametrize("text", [text for text in EXPRESSIONS if compiles(text)])
def test_the_compiled_function_gives_what_spark_gives(text: str, by_spark: dict[str, pa.ChunkedArray]) -> None:
    codes = Codes()
    expression = typed(text)
    expected = python_values(by_spark[text].combine_chunks())
    if expression.type == STRING:
        expected = [None if value is None else codes[value] for value in expected]
    assert differences(text, expected, [plain(value) for value in compiled_results(expression, codes)]) == []


def test_only_text_and_decimal_places_are_left_to_the_batch() -> None:
    refused = {text for text in EXPRESSIONS if not compiles(text)}
    kinds = {part.type.name for text in refused for part in typed(text).operands if not text.startswith("round")}  # type: ignore[union-attr]
    assert {text for text in refused if text.startswith("round")} == {"round(x, 2)", "round(f, 1)", "round(y, 1)"}
    assert refused
    assert len(EXPRESSIONS) - len(refused) >= 150
    assert kinds
