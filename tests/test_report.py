"""Problems as text with a caret, and as JSON."""

import json

from estream.errors import Place, Problem
from estream.report import MOST_SHOWN, WIDTH, in_order, render, summary, to_json

LINES = {"fever.yaml": ["events:", "  Spike: {on: vitals, mask: temp > 39}"]}
TEMP = Problem(Place("fever.yaml", 2, 29, 4), "event 'Spike': mask uses 'temp'")
UNUSED = Problem(Place("fever.yaml", 1, 1, 6), "nothing uses it", "warning", "remove it")


def test_the_caret_stands_under_the_place() -> None:
    assert render([TEMP], LINES) == (
        "fever.yaml:2:29: event 'Spike': mask uses 'temp'\n"
        "  2 |   Spike: {on: vitals, mask: temp > 39}\n"
        "    |                             ^^^^\n"
    )


def test_problems_are_in_the_order_of_the_file_and_each_once() -> None:
    assert in_order([TEMP, UNUSED, TEMP]) == (UNUSED, TEMP)


def test_colour_is_only_there_when_asked_for() -> None:
    assert "\033[" not in render([TEMP], LINES)
    assert "\033[31m" in render([TEMP], LINES, color=True)
    assert "\033[33m" in render([UNUSED], LINES, color=True)


def test_a_place_outside_the_known_lines_gets_no_excerpt() -> None:
    assert render([TEMP], {}) == "fever.yaml:2:29: event 'Spike': mask uses 'temp'\n"


def test_wide_characters_take_two_columns() -> None:
    problem = Problem(Place("f", 1, 3), "here")
    assert render([problem], {"f": ["温度x"]}).splitlines()[-1] == "    |     ^"


def test_a_file_cannot_move_the_cursor_of_the_terminal() -> None:
    assert "\033" not in render([Problem(Place("f", 1, 1), "bad \033[2J name")], {"f": ["\033[2J: 1"]})


def test_a_long_line_is_cut_around_its_place() -> None:
    line = "x" * 1000 + "HERE" + "x" * 1000
    shown = render([Problem(Place("f", 1, 1001, 4), "here")], {"f": [line]}).splitlines()
    assert len(shown[1]) < WIDTH + 10
    assert shown[1][shown[2].index("^") :].startswith("HERE")


def test_json_has_every_part_of_a_problem() -> None:
    found = json.loads(to_json([TEMP, UNUSED]))
    assert (found["errors"], found["warnings"]) == (1, 1)
    assert found["problems"][0] == {
        "file": "fever.yaml",
        "line": 1,
        "column": 1,
        "length": 6,
        "severity": "warning",
        "message": "nothing uses it",
        "hint": "remove it",
    }


def test_the_summary_counts_in_words() -> None:
    assert summary([]) == "no problems"
    assert summary([TEMP, TEMP, UNUSED]) == "1 error, 1 warning"


def test_people_are_shown_the_first_of_very_many_problems_and_programs_get_all() -> None:
    many = [Problem(Place(file, line, 1), "here") for file in ("a", "b") for line in range(1, 1501)]
    shown = render([*many, TEMP], {}).splitlines()
    assert shown[MOST_SHOWN] == "a: and 1,400 more; estream check --format json gives all"
    assert len(shown) == 2 * (MOST_SHOWN + 1) + 1
    assert len(json.loads(to_json(many))["problems"]) == 3000
