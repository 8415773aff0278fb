"""The history as people and programs read it: a table, JSON, CSV, and one firing with its timeline."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Any

from estream.errors import EStreamError
from estream.history.query import Line, Whole
from estream.report import printable
from estream.rule.detection import Detected, moment
from estream.rule.template import as_text, lookup
from estream.spec.expression import Aggregate, Attribute, walk
from estream.spec.expression_parser import parse_expression
from estream.spec.expression_text import to_text
from estream.text import Text

COLUMNS = ("id", "end", "file", "rule", "event", "partition", "state", "attempts", "error")


def instant(microseconds: int | None) -> str | None:
    """A time as ISO text in UTC."""
    return None if microseconds is None else moment(microseconds).astimezone(UTC).isoformat().replace("+00:00", "Z")


def as_data(line: Line) -> dict[str, Any]:
    """A firing of a list as JSON data."""
    values = (
        line.number, instant(line.end), line.ceq, line.rule, line.event, line.partition, line.state, line.attempts,
        line.error,
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def to_json(lines: Iterable[Line]) -> str:
    """The list as one JSON array."""
    return json.dumps([as_data(line) for line in lines], indent=2, ensure_ascii=False)


def to_csv(lines: Iterable[Line]) -> str:
    """The list as CSV with a header."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in as_data(line).items()} for line in lines)
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A value for a cell: text that a spreadsheet would run as a formula is marked as text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def to_table(lines: Sequence[Line], width: int) -> str:
    """The list as a table for people; the last column is cut to the width."""
    rows = [
        COLUMNS,
        *(["" if one is None else printable(str(one)) for one in as_data(line).values()] for line in lines),
    ]
    used = [place for place in range(len(COLUMNS)) if any(row[place] for row in rows[1:])]
    widths = [max(len(row[place]) for row in rows) for place in used]
    shown = ("  ".join(row[place].ljust(size) for place, size in zip(used, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() if len(line) <= width else line[: width - 1] + "…" for line in shown)


def whole_as_data(whole: Whole) -> dict[str, Any]:
    """Everything about a firing as JSON data."""
    return {
        **as_data(whole.line),
        "version": whole.version,
        "definition": json.loads(whole.definition),
        "condition": {"text": whole.condition, "values": dict(condition_values(whole.condition, whole.detected))},
        "detection": {
            "id": f"{whole.detected.id % 2**64:016x}",
            "start": instant(whole.detected.start),
            "end": instant(whole.detected.end),
            "batch": whole.batch,
            "recorded": instant(whole.recorded),
            "constituents": [
                {"event": one.event, "time": instant(one.microseconds), "attributes": dict(one.attributes)}
                for one in whole.detected.constituents
            ],
        },
        "due": instant(whole.due),
        "tried": [
            {"attempt": one.number, "action": one.action, "started": instant(one.started),
             "microseconds": one.duration, "error": one.error} for one in whole.tried
        ],
        "raised": [{"event": one.event, "time": instant(one.time), "depth": one.depth} for one in whole.raised],
    }  # fmt: skip


def condition_values(condition: str | None, detected: Detected) -> Iterator[tuple[str, Any]]:
    """What each name and aggregate in a condition stood for; nothing for a condition in Python."""
    if condition is None or condition.startswith("python:"):
        return
    try:
        expression = parse_expression(Text(condition))
    except EStreamError:
        return  # it had a value of the environment in it, which is not kept
    parts = list(walk(expression))
    for part in parts:
        if isinstance(part, Aggregate) and isinstance(part.operand, Attribute):
            operand = part.operand
            leaf, name = (operand.event, operand.name) if operand.event else (operand.name, None)
            mine = [one for one in detected.constituents if one.event == leaf]
            yield to_text(part), len(mine) if name is None else f"of {[one.attributes.get(name) for one in mine]}"
        elif isinstance(part, Attribute) and part.event is not None:
            yield to_text(part), lookup(detected, part.event, part.name)


def to_text_whole(whole: Whole) -> Iterator[str]:
    """Everything about a firing in lines: its detection as a timeline, the condition with its values, attempts."""
    return map(printable, _told(whole))


def _told(whole: Whole) -> Iterator[str]:
    line, detected = whole.line, whole.detected
    yield f"firing {line.number}: rule {line.rule} of {line.ceq} on {line.event}: {line.state}"
    yield f"  detected   {instant(detected.end)}" + (f", partition {line.partition}" if line.partition else "")
    yield f"  recorded   {instant(whole.recorded)} in batch {whole.batch}, rule version {whole.version}"
    yield f"  detection  {detected.id % 2**64:016x}, from {instant(detected.start)}"
    for one in detected.constituents:
        attributes = ", ".join(f"{name}={as_text(value)}" for name, value in one.attributes.items())
        after = (one.microseconds - detected.start) / 1e6
        yield f"    {instant(one.microseconds)}  +{after:.3f} s  {one.event}  {attributes}".rstrip()
    if whole.condition is not None:
        yield f"  condition  {whole.condition}"
        yield from (f"    {name} = {as_text(value)}" for name, value in condition_values(whole.condition, detected))
    for tried in whole.tried:
        said = tried.error or "done"
        yield (
            f"  attempt {tried.number}, action {tried.action + 1}  {instant(tried.started)}  "
            f"{tried.duration / 1000:.1f} ms  {said}"
        )
    if whole.due is not None:
        yield f"  next try   {instant(whole.due)}"
    if line.error and not any(one.error == line.error for one in whole.tried):
        yield f"  {line.error}"
    yield from (f"  raised     {one.event} at {instant(one.time)}, {one.depth} deep" for one in whole.raised)
