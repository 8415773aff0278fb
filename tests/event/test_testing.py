"""`estream.testing`, as its page describes it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from estream.errors import EStreamError
from estream.testing import Cuts, Row, detect, row, run

PAGE = (Path(__file__).parent.parent.parent / "docs" / "testing.md").read_text()


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL))
def test_the_examples_of_the_page_hold(example: str) -> None:
    assert "assert" in example
    exec(example, {"detect": detect})


@pytest.mark.parametrize(
    ("context", "found"),
    [
        ("unrestricted", ["A1 B3", "A2 B3", "A1 B4", "A2 B4"]),
        ("recent", ["A2 B3", "A2 B4"]),
        ("chronicle", ["A1 B3", "A2 B4"]),
        ("continuous", ["A1 B3", "A2 B3"]),
        ("cumulative", ["A1 A2 B3"]),
    ],
)
def test_every_context(context: str, found: list[str]) -> None:
    assert detect("A ; B", context=context, events="A1 A2 B3 B4") == found


def test_seconds_may_have_fractions() -> None:
    assert detect("A + 1500 ms", events="A0.25 B0.5") == ["A0.25"]
    assert row("A0.25") == Row("A", 250_000, 0)


def test_attributes_of_every_type_come_back() -> None:
    given = {"b": True, "i": 7, "f": 1.5, "s": "x", "t": datetime(2024, 1, 2, tzinfo=UTC), "n": None}
    ((found,),) = (one.constituents for one in run({"E": {"when": "A"}}, [row("A1", 1, **given)], ["E"]))
    assert found == Row("A", 1_000_000, 1, given)


def test_a_wrong_word_is_told() -> None:
    with pytest.raises(EStreamError, match="'A' is not an event and its second"):
        detect("A", events="A")


def test_a_wrong_definition_is_told_with_what_would_be_right() -> None:
    with pytest.raises(EStreamError, match="E"):
        detect("A ; ", events="A1")
    with pytest.raises(EStreamError, match="contxt"):
        detect("A ; B", events="A1", contxt="recent")


def test_an_attribute_of_two_types_is_told() -> None:
    with pytest.raises(EStreamError, match="attribute 'v' is int, str; use one of bool, int, float, str, datetime"):
        detect("A", events=[row("A1", 1, v=1), row("A2", 2, v="x")])


def test_cuts_change_nothing() -> None:
    text = "A1 B2 A3 A4 B5 B6 A7 B8"
    for seed in range(20):
        assert detect("A ; B", events=text, context="chronicle", cuts=Cuts(4, seed)) == [
            "A1 B2",
            "A3 B5",
            "A4 B6",
            "A7 B8",
        ]
