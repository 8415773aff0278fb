"""The applications of the field's pattern benchmark: each finds what was put into noise of the benchmark's shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from estream.app import load
from estream.event.pattern import compile_pattern
from estream.event.pattern_step import batch_schema, begin, step

ROOT = Path(__file__).parent.parent.parent
SPECS = sorted(path for field in ("finance", "social") for path in (ROOT / "ceq_specs" / field).glob("*.yaml"))
SYMBOLS, AUTHORS, SECOND = 390, 6_142, 1_000_000


def found(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The output of each match of an application over rows a second apart, with the numbers of its rows."""
    plan = load(next(path for path in SPECS if path.stem == name), {}, ROOT).plan
    assert plan is not None
    matcher = compile_pattern(plan.patterns[0], with_rows=True)
    columns: list[list[Any]] = [[0] * len(rows), [at * SECOND for at in range(len(rows))], list(range(len(rows)))]
    for column in matcher.needed:
        columns.append([at * SECOND if column == "ts" else row.get(column, at) for at, row in enumerate(rows)])
    batch = pa.table(columns, schema=batch_schema(matcher))
    matches = step(matcher, begin(matcher), batch, 0, end_of_input=True).detections.to_pylist()
    return [{"rows": one["rows"], **one["output"]} for one in matches]


def among_noise(planted: list[dict[str, Any]], noise: dict[str, Any], key: str, keys: int) -> list[dict[str, Any]]:
    """Each row, then one row of noise of another key."""
    return [row for at, one in enumerate(planted) for row in (one, {**noise, key: f"other {at % keys}"})]


def trades(*prices: float, sizes: dict[int, int] | None = None) -> list[dict[str, Any]]:
    """Trades of IBM at these prices, of size 100 unless given, among trades of 389 other symbols at one price."""
    ibm = [{"symbol": "IBM", "price": price, "size": (sizes or {}).get(at, 100)} for at, price in enumerate(prices)]
    return among_noise(ibm, {"price": 50.0, "size": 100}, "symbol", SYMBOLS - 1)


def posts(*tags: str) -> list[dict[str, Any]]:
    """Posts of Ann with the tags of each word, among posts of other authors about one thing."""
    ann = [
        {"author": "Ann", **dict(zip(("tag1", "tag2", "tag3"), word.ljust(3, word[0]), strict=True))} for word in tags
    ]
    return among_noise(ann, {"tag1": "x", "tag2": "x", "tag3": "x"}, "author", AUTHORS - 1)


def numbers(matches: list[dict[str, Any]]) -> list[list[int]]:
    """The planted rows of each match, by their places among the planted ones."""
    return [[row // 2 for row in one["rows"]] for one in matches]


def test_a_large_trade_then_a_peak() -> None:
    matches = found("large_trade_then_peak", trades(9, 10, 11, 12, 11, 12, 13, sizes={1: 9_500, 5: 500}))
    assert numbers(matches) == [[1, 2, 3, 4]]
    assert (matches[0]["symbol"], matches[0]["trades"], matches[0]["peak"]) == ("IBM", 4, 12.0)


def test_a_double_top() -> None:
    matches = found("double_top", trades(9, 10, 12, 11, 13, 12, 8, 9))
    assert numbers(matches) == [[0, 1, 2, 3, 4, 5, 6]]
    assert matches[0]["top"] == 13.0


def test_a_rise_and_then_a_flat_stretch_in_a_time_window() -> None:
    rising, flat = [100.0, 101.0, 102.5], [102.5] * 160
    matches = found("rise_then_flat", trades(*rising, *flat))
    assert numbers(matches) == [list(range(151))]
    assert matches[0]["rise"] == 2.5


def test_a_price_far_above_the_average() -> None:
    averages = [{"symbol": "IBM", "price": price, "vwap": 100.0} for price in (104, 106, 99)]
    rows = among_noise(averages, {"price": 50.0, "vwap": 50.0}, "symbol", SYMBOLS - 1)
    assert [(one["rows"], one["price"]) for one in found("far_above_average", rows)] == [([2], 106.0)]


def test_highs_below_later_lows() -> None:
    bars = [(10.0, 9.95), (10.1, 9.0), (10.3, 10.0), (11.0, 10.5)]
    rows = among_noise(
        [{"symbol": "IBM", "high": high, "low": low} for high, low in bars],
        {"high": 50.0, "low": 40.0},
        "symbol",
        SYMBOLS - 1,
    )
    matches = found("highs_below_lows", rows)
    assert numbers(matches) == [[0, 1, 2, 3]]
    assert (matches[0]["high"], matches[0]["low"]) == (11.0, 10.5)


def test_a_large_increase_in_a_time_window() -> None:
    slow = [100 + at * 0.1 for at in range(40)]
    assert found("large_increase", trades(*slow)) == []
    matches = found("large_increase", trades(*slow, 109.0))
    assert numbers(matches) == [list(range(10, 41))]
    assert matches[0]["increase"] == pytest.approx(109.0 - slow[10])


def test_five_posts_with_the_same_tags() -> None:
    matches = found("five_same_tags", posts("ab", "c", "ab", "ab", "ab", "ab", "ab", "ab"))
    assert numbers(matches) == [[2, 3, 4, 5, 6]]
    assert matches[0]["posts"] == 5


def test_disjoint_first_and_last_tags() -> None:
    assert numbers(found("disjoint_tags", posts("abc", "abd", "ade", "def", "abc"))) == [[0, 1, 2, 3]]


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_the_file_is_right(path: Path) -> None:
    loaded = load(path, {}, ROOT)
    assert [str(problem) for problem in loaded.problems] == []
    assert loaded.plan is not None


def test_there_are_nine() -> None:
    assert len(SPECS) == 9
