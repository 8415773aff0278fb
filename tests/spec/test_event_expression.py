"""Event expressions: text to tree, tree to text, and what a wrong text is told (docs/semantics.md, section 2)."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.errors import EStreamError, Place
from estream.spec.event_expression import Apply, EventExpression, Name, depth, names, to_text
from estream.spec.event_parser import MAX_DEPTH, MAX_LENGTH, parse_event
from estream.text import Mark, Text

A, B, C, D = (Name(name) for name in "ABCD")
SECOND = 1_000_000


def without_spans(expression: EventExpression) -> EventExpression:
    if isinstance(expression, Name):
        return Name(expression.name)
    operands = tuple(without_spans(operand) for operand in expression.operands)
    return Apply(expression.operator, operands, expression.duration, expression.count)


def parsed(text: str) -> EventExpression:
    return without_spans(parse_event(Text(text)))


def problems(text: str) -> list[str]:
    with pytest.raises(EStreamError) as raised:
        parse_event(Text(text))
    return [f"{problem.place.column}: {problem.message}" for problem in raised.value.problems]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A", A),
        ("A or B", Apply("or", (A, B))),
        ("A AND B", Apply("and", (A, B))),
        ("A ; B", Apply(";", (A, B))),
        ("not(B)[A, C]", Apply("not", (A, B, C))),
        ("Not ( B ) [ A , C ]", Apply("not", (A, B, C))),
        ("A(A, B, C)", Apply("A", (A, B, C))),
        ("A*(A, B, C)", Apply("A*", (A, B, C))),
        ("P(A, 5 s, C)", Apply("P", (A, C), duration=5 * SECOND)),
        ("P*(A, 1.5 minutes, C)", Apply("P*", (A, C), duration=90 * SECOND)),
        ("A + 10 min", Apply("+", (A,), duration=600 * SECOND)),
        ("absent(A, B, 500ms)", Apply("absent", (A, B), duration=SECOND // 2)),
        ("times(3, A)", Apply("times", (A,), count=3)),
    ],
)
def test_every_operator_is_read(text: str, tree: EventExpression) -> None:
    assert parsed(text) == tree


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("A or B and C", "A or (B and C)"),
        ("A and B ; C", "A and (B ; C)"),
        ("A ; B + 1 s", "A ; (B + 1 s)"),
        ("A ; B ; C", "(A ; B) ; C"),
        ("A or B or C", "(A or B) or C"),
        ("A and B and C", "(A and B) and C"),
        ("A + 1 s + 2 s", "(A + 1 s) + 2 s"),
    ],
)
def test_plus_binds_tightest_then_sequence_then_and_then_or(text: str, grouped: str) -> None:
    assert parsed(text) == parsed(grouped)
    assert to_text(parsed(grouped)) == text


def test_parentheses_that_matter_are_kept() -> None:
    for text in ("A ; (B ; C)", "(A or B) and C", "(A ; B) + 1 s", "A or (B or C)"):
        assert to_text(parsed(text)) == text


def test_a_and_p_are_operators_only_directly_before_a_parenthesis() -> None:
    assert parsed("A ; P") == Apply(";", (A, Name("P")))
    assert parsed("P(P, 1 s, A)") == Apply("P", (Name("P"), A), duration=SECOND)
    assert parsed("(A)") == A


def test_names_may_begin_like_reserved_words_and_are_case_sensitive() -> None:
    assert names(parsed("order ; notice or Android and timesheet or Order")) == (
        "order", "notice", "Android", "timesheet", "Order",
    )  # fmt: skip


def test_spans_cover_the_text_of_each_part() -> None:
    text = "(Ab ; Cd) or times(2, Ef)"
    either = parse_event(Text(text))
    assert isinstance(either, Apply)
    assert [text[slice(*operand.span)] for operand in either.operands] == ["Ab ; Cd", "times(2, Ef)"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1: the expression is empty, expected an event's name, '(' or an operator"),
        ("A ;", "4: the expression ends, expected an event's name, '(' or an operator"),
        ("A ; )", "5: found ')', expected an event's name, '(' or an operator"),
        ("A B", "3: found 'B', expected 'or', 'and', ';', '+' or the end"),
        ("(A ; B", "7: the expression ends, expected 'or', 'and', ';', '+' or ')'"),
        ("not B", "5: found 'B', expected '('"),
        ("not(B)(A, C)", "7: found '(', expected '['"),
        ("A + B", "5: found 'B', expected a duration, like 10 min"),
        ("A + 10", "7: the expression ends, expected a unit of time, like s, min or h"),
        ("P(A, B, C)", "6: found 'B', expected a duration, like 10 min"),
        ("times(A, 3)", "7: found 'A', expected a whole number from 2 on"),
        ("times(1, A)", "7: times(1, ...) is wrong; write a whole number from 2 to 1000000"),
        ("times(2.5, A)", "7: times(2.5, ...) is wrong; write a whole number from 2 to 1000000"),
        ("A + 5 fortnights", "5: 'fortnights' is not a unit of time; use us, ms, s, min, h, d or their words"),
        ("A + 0 s", "5: '0 s' is not a positive whole number of microseconds"),
        ("A & B", "3: an event expression has no '&'; it has names, durations, brackets and "
         "or and ; not absent times A A* P P* +"),
    ],
)  # fmt: skip
def test_a_wrong_expression_is_told_where_what_and_what_is_right(text: str, expected: str) -> None:
    assert problems(text) == [expected]


def test_all_wrong_numbers_are_told_in_one_go() -> None:
    assert [problem.split(":")[0] for problem in problems("times(0, A) ; B + 3 moons")] == ["7", "19"]


def test_a_space_before_the_parenthesis_of_a_gets_a_hint() -> None:
    with pytest.raises(EStreamError, match=r"write 'A\(' without a space"):
        parse_event(Text("A (B, C, D)"))


def test_the_place_is_that_of_the_file() -> None:
    mark = Mark(Place("f.yaml", 7, 11), ((7, 11), (8, 5)))
    with pytest.raises(EStreamError) as raised:
        parse_event(Text("A ;\nB B", mark))
    assert str(raised.value).startswith("f.yaml:8:7: found 'B'")


def test_length_and_depth_are_capped() -> None:
    assert "at most" in problems("A or " * MAX_LENGTH)[0]
    assert "nested deeper" in problems("A" + " or A" * (MAX_DEPTH + 1))[0]
    assert "the expression ends" in problems("(" * MAX_LENGTH)[0]
    assert parsed("(" * 4000 + "A" + ")" * 4000) == A
    assert depth(parsed("A" + " or A" * MAX_DEPTH)) == MAX_DEPTH


event_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,4}", fullmatch=True).filter(
    lambda name: name.lower() not in {"or", "and", "not", "absent", "times"}
)
durations = st.integers(min_value=1, max_value=10**15)


def applications(operands: st.SearchStrategy[EventExpression]) -> st.SearchStrategy[EventExpression]:
    def of(operator: str, arity: int, **settings: st.SearchStrategy[int]) -> st.SearchStrategy[Apply]:
        return st.builds(Apply, st.just(operator), st.tuples(*[operands] * arity), **settings)

    timed = {"duration": durations}
    return st.one_of(
        *(of(operator, 2) for operator in ("or", "and", ";")),
        *(of(operator, 3) for operator in ("not", "A", "A*")),
        *(of(operator, 2, **timed) for operator in ("P", "P*", "absent")),
        of("+", 1, **timed),
        of("times", 1, count=st.integers(min_value=2, max_value=1000)),
    )


@given(st.recursive(event_names.map(Name), applications, max_leaves=12))
def test_tree_to_text_to_tree(expression: EventExpression) -> None:
    assert parsed(to_text(expression)) == expression


tokens = st.sampled_from(
    ["A", "P", "A*", "(", ")", "[", "]", ",", ";", "+", "or", "not", "absent", "times", "2", "1.5", "s", "é", "\n"]
)


@given(st.one_of(st.text(max_size=40), st.lists(tokens, max_size=15).map(" ".join), st.lists(tokens).map("".join)))
def test_only_located_problems_come_out(text: str) -> None:
    with contextlib.suppress(EStreamError):
        parse_event(Text(text))
