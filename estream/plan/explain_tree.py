"""The plan as a tree for people. Nothing is cut off: lines wrap on a terminal, and nowhere else."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from estream.hidden import shown_number
from estream.plan.build import PASSES
from estream.plan.explain_events import events
from estream.plan.explain_lines import Line, columns, joined, length, moment
from estream.plan.explain_pattern import transitions
from estream.plan.model import Leaf, Pattern, Plan, Query, Rule, Stream, Table, Temporal
from estream.report import printable

NARROWEST = 40
"""On a narrower terminal the guides would leave no room for the words."""

_DIM, _NAME, _ALARM = "bright_black", "bold", "yellow"


def to_tree(plan: Plan, width: int | None = None, color: bool = False) -> str:
    """The plan as lines with guides: wrapped at a width, else one line for each thing."""
    top = Line(plan.name, (f"order {plan.order}",), tuple(_sections(plan)))
    page = io.StringIO()
    console = Console(
        file=page,
        width=max(width, NARROWEST) if width else 1 << 30,
        height=100,  # Of no use here, but without it a dumb terminal is 80 wide whatever is given.
        color_system="standard" if color else None,
        force_terminal=color,
        legacy_windows=False,
    )
    console.print(_drawn(top), highlight=False)
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()) + "\n"


def _drawn(line: Line) -> Tree:
    tree = Tree(_styled(line), guide_style=_DIM)
    tree.children += map(_drawn, line.below)
    return tree


def _styled(line: Line) -> Text:
    text = Text(_clean(line.name), _NAME if line.is_name else "")
    text.append(_clean(line.meaning), "not bold")
    for detail in line.details:
        text.append(" · ", _DIM).append(_clean(detail), _ALARM if detail == "unbounded" else "not bold")
    return text


def _clean(text: str) -> str:
    """In one line, with nothing that a terminal would act on."""
    inner = printable(" ".join(text.split()))
    return f"{' ' * text.startswith(' ')}{inner}{' ' * (text.endswith(' ') and bool(inner))}"


def _sections(plan: Plan) -> Iterator[Line]:
    parts: tuple[tuple[str, Iterable[Line]], ...] = (
        ("streams", map(_stream, plan.streams)),
        ("tables", map(_table, plan.tables)),
        ("queries", map(_query, plan.queries)),
        ("primitive events", (_leaf(each) for each in plan.leaves if not each.matched)),
        ("temporal events", map(_temporal, plan.temporals)),
        ("pattern events", map(_pattern, plan.patterns)),
        ("detected events", events(plan)),
        ("rules, higher priority first", map(_rule, plan.rules)),
    )
    for title, lines in parts:
        if below := tuple(lines):
            yield Line(title, below=below, is_name=False)
    yield Line("planned by: " + ", ".join(work.__name__ for work, _ in PASSES), is_name=False)


def _stream(stream: Stream) -> Line:
    idle = f"idle after {length(stream.idle_after)}" if stream.idle_after else ""
    details = joined(stream.format, f"time {stream.time}", f"watermark {length(stream.watermark)}", idle)
    return Line(stream.name, details, (_gives(columns(stream.columns)),))


def _table(table: Table) -> Line:
    refresh = f"read anew every {length(table.refresh)}" if table.refresh else "read once"
    return Line(table.name, joined(table.format, refresh))


def _query(query: Query) -> Line:
    start = f"from {query.start}" if query.start else ""
    stop = f"until {query.stop}" if query.stop else ""
    channel = f"published to {query.publish}" if query.publish else ""
    state = "keeps state" if query.stateful else ""
    details = joined(query.kind, f"reads {', '.join(query.reads)}", state, start, stop, channel)
    return Line(query.name, details, (Line(query.text, is_name=False), _gives(columns(query.columns))))


def _gives(text: str) -> Line:
    return Line(f"gives {text}", is_name=False)


def _leaf(leaf: Leaf) -> Line:
    mask = f"mask {leaf.mask_text}" if leaf.mask_text else ""
    known_by = f"id {', '.join(leaf.id)}" if leaf.id else ""
    everything = len(leaf.needed) == len(leaf.columns)
    carried = "carries " + ("every column" if everything else ", ".join(leaf.needed) or "no column")
    return Line(leaf.name, joined("raised" if leaf.raised else f"on {leaf.query}", mask, known_by, carried))


def _temporal(temporal: Temporal) -> Line:
    at = f"at {moment(temporal.at)}" if temporal.at is not None else ""
    every = f"every {length(temporal.every)}" if temporal.every else ""
    cron = f"cron {temporal.cron.shown}, {temporal.timezone}" if temporal.cron else ""
    return Line(temporal.name, joined(at, every, cron))


def _pattern(pattern: Pattern) -> Line:
    by = f"by {', '.join(pattern.partition)}" if pattern.partition else ""
    within = f"within {length(pattern.within)}" if pattern.within else ""
    overlap = "matches may overlap" if pattern.skip == "overlap" else ""
    automaton = tuple(Line(each, is_name=False) for each in transitions(pattern))
    return Line(pattern.name, joined(f"on {pattern.query}", pattern.text, by, within, overlap), automaton)


def _rule(rule: Rule) -> Line:
    event = f"on {rule.event}" + (f" in context {rule.context}" if rule.context else "")
    details = joined(
        f"priority {shown_number(rule.priority)}", rule.coupling, event, "" if rule.enabled else "not enabled"
    )
    condition = (f"if {rule.condition_text}",) if rule.condition_text else ()
    return Line(rule.name, details, tuple(Line(each, is_name=False) for each in (*condition, *rule.actions)))
