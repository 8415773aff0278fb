"""`explain`: the plans of the examples as they are kept beside this test, and what each format promises.

After a wanted change `python -m tests.plan.test_explain` writes the files anew: read the difference before you keep it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from estream.app import load
from estream.plan.build import PASSES
from estream.plan.explain import Format, explain
from estream.plan.model import Plan
from tests.plan.small import planned, rule

SPECS = sorted((Path(__file__).parent.parent.parent / "ceq_specs").glob("*.yaml"))
KEPT = Path(__file__).parent / "testdata"
FORMATS: dict[Format, str] = {"text": "txt", "json": "json", "dot": "dot", "mermaid": "mmd"}

DOT_ITEM = re.compile(r'  (\w+) \[label="((?:[^"\\]|\\.)*)", shape=\w+(?:, style=\w+)?\];')
DOT_ARROW = re.compile(r"  (\w+) -> (\w+)(?: \[style=dashed\])?;")
MERMAID_ITEM = re.compile(r'  (\w+)(\[\(|\[/|\[|\(\[|\(\(|\(|\{\{)"([^"]*)"(\)\]|/\]|\]|\]\)|\)\)|\)|\}\})')
MERMAID_ARROW = re.compile(r"  (\w+) (?:-->|-\.->) (\w+)")
CLOSING = {"[(": ")]", "[/": "/]", "[": "]", "([": "])", "((": "))", "(": ")", "{{": "}}"}


EVENTS = """\
│   ├── Y = X ; (C or T) · #7 · chronicle · by v · published to ys · unbounded
│   │   ├── X · #3 · relayed · by v · stage 1
│   │   │   └── X = A ; B · #2 · recent · by k · bounded · shared by 2
│   │   │       ├── mask of each pair: A.v = B.v
│   │   │       ├── mask of B alone: B.name <> '"#\\n<&'
│   │   │       ├── A · #0
│   │   │       └── B · #1
│   │   └── C or T · #6 · bounded
│   │       ├── C · #4
│   │       └── T · #5
│   ├── Z = X and D · #9 · recent · point · by k · within 5 min · bounded
│   │   ├── X = A ; B · #2 · as above
│   │   └── D · #8
│   └── M · #11 · bounded by within
│       └── M rows · #10
"""


def plan_of(path: Path) -> Plan:
    plan = load(path, {}).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_the_plans_of_the_examples_are_as_kept(path: Path, format: Format) -> None:
    kept = (KEPT / f"{path.stem}.{FORMATS[format]}").read_text(encoding="utf-8")
    assert explain(plan_of(path), format).rstrip("\n") == kept.rstrip("\n")


@pytest.fixture
def relayed() -> Plan:
    """A plan with everything that is drawn: relays, sharing, masks, a pattern, a temporal and a published event."""
    pattern = {"on": "S", "pattern": "up+ down", "define": {"up": "v > 1", "down": "v < 1"}, "output": {"k": "k"}}
    events = {
        "X": {"when": "A ; B", "partition_by": "k", "mask": "A.v = B.v and B.name <> '\"#\\n<&'"},
        "Y": {"when": "X ; (C or T)", "partition_by": "v", "context": "chronicle", "publish": "ys"},
        "Z": {"when": "X and D", "partition_by": "k", "semantics": "point", "within": "5 min"},
        "M": {**pattern, "within": "1 h"},
    }
    rules = {"OnY": rule("Y", priority=3), "OnZ": rule("Z"), "OnM": rule("M", enabled=False)}
    return planned(events, rules).plan


def test_events_are_a_tree_with_context_partition_bounds_and_sharing(relayed: Plan) -> None:
    text = explain(relayed)
    section = text[text.index("│   ├── Y =") : text.index("├── rules, higher")]
    assert section == EVENTS


def test_no_text_is_lost_when_nothing_limits_the_width(relayed: Plan) -> None:
    long = planned({"E": {"when": " or ".join(["A ; B"] * 60)}}).plan
    assert " or ".join(["A ; B"] * 60) in explain(long)


@pytest.mark.parametrize("width", [40, 72, 200])
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_lines_wrap_at_the_width_of_the_terminal_and_keep_every_word(path: Path, width: int) -> None:
    plan = plan_of(path)
    narrow, wide = explain(plan, width=width), explain(plan)
    assert max(map(len, narrow.splitlines())) <= width

    def letters(text: str) -> str:
        return re.sub(r"[\s│├└─]", "", text)

    assert letters(narrow) == letters(wide)


def test_colour_only_where_it_is_wanted(relayed: Plan) -> None:
    colored = explain(relayed, color=True, width=200)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[\d;]*m", "", colored) == explain(relayed, width=200)


def test_what_a_terminal_would_act_on_is_not_printed() -> None:
    plan = planned({"E": {"when": "A"}}, {"R": rule("E", actions=[{"log": "a\x1b[2Jb\nc"}])}).plan
    assert "log a\N{REPLACEMENT CHARACTER}[2Jb c" in explain(plan)


def test_json_tells_the_passes_the_nodes_and_their_signatures(relayed: Plan) -> None:
    data = json.loads(explain(relayed, "json"))
    assert [each["name"] for each in data["passes"]] == [work.__name__ for work, _ in PASSES]
    assert [each["signature"] for each in data["nodes"]] == [node.signature for node in relayed.nodes]
    assert data["version"] == 1


def test_dot_declares_every_end_of_an_arrow_once(relayed: Plan) -> None:
    head, *lines, end = explain(relayed, "dot").splitlines()
    assert (head, lines[0], end) == ('digraph "ceq" {', "  rankdir=LR;", "}")
    items = [found[1] for line in lines if (found := DOT_ITEM.fullmatch(line))]
    arrows = [found.groups() for line in lines if (found := DOT_ARROW.fullmatch(line))]
    assert len(items) + len(arrows) == len(lines) - 1
    assert len(items) == len(set(items))
    assert {end for arrow in arrows for end in arrow} <= set(items)


def test_mermaid_declares_every_end_of_an_arrow_once(relayed: Plan) -> None:
    head, *lines = explain(relayed, "mermaid").splitlines()
    assert head == "flowchart LR"
    shapes = [found for line in lines if (found := MERMAID_ITEM.fullmatch(line))]
    arrows = [found.groups() for line in lines if (found := MERMAID_ARROW.fullmatch(line))]
    assert len(shapes) + len(arrows) == len(lines)
    assert all(CLOSING[shape[2]] == shape[4] for shape in shapes)
    assert {end for arrow in arrows for end in arrow} <= {shape[1] for shape in shapes}


@pytest.mark.parametrize(("format", "relay"), [("dot", "[style=dashed]"), ("mermaid", "-.->")])
def test_graphs_draw_a_relay_apart(relayed: Plan, format: Format, relay: str) -> None:
    assert explain(relayed, format).count(relay) == 1


@pytest.mark.parametrize("format", FORMATS)
def test_a_selection_is_explained_in_each_format(relayed: Plan, format: Format) -> None:
    shown = explain(relayed, format, "Z+")
    assert "OnZ" in shown
    assert "OnY" not in shown


@pytest.mark.parametrize("format", FORMATS)
def test_values_of_the_environment_are_never_shown(format: Format) -> None:
    events = {"E": {"when": "A ; B", "mask": "A.name = '${WORD}'"}, "A": {"on": "S", "mask": "name > '${WORD}'"}}
    rules = {
        "R": rule("E", actions=[{"webhook": {"url": "https://example.org/${WORD}"}}], condition="A.name < '${WORD}'")
    }
    assert "sesame" not in explain(planned(events, rules, environment={"WORD": "sesame"}).plan, format)


def _keep() -> None:
    KEPT.mkdir(exist_ok=True)
    for path in SPECS:
        for format, ending in FORMATS.items():
            text = explain(plan_of(path), format).rstrip("\n") + "\n"
            (KEPT / f"{path.stem}.{ending}").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _keep()
