"""The recorded order is a linear extension of the one that the contract gives, whatever the rules and detections."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from estream.history.database import Database
from estream.rule.detection import Detection
from tests.rule.desk import Desk

COUPLINGS = ("immediate", "deferred")
RULES = st.lists(
    st.tuples(st.sampled_from("AB"), st.integers(-2, 2), st.sampled_from(COUPLINGS)), min_size=1, max_size=5
)
ROWS = st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 4)), min_size=1, max_size=8, unique=True)


@settings(max_examples=25)
@given(rules=RULES, rows=ROWS)
def test_recorded_attempts_follow_the_order_of_the_contract(
    rules: list[tuple[str, int, str]], rows: list[tuple[str, int]]
) -> None:
    lines = "".join(
        f'  r{number}: {{on: {event}, priority: {priority}, coupling: {coupling}, actions: [{{log: "x"}}]}}\n'
        for number, (event, priority, coupling) in enumerate(rules)
    )
    order: list[tuple[int, int]] = []

    def note(number: int) -> Callable[[Detection], None]:
        return lambda detection: order.append((number, detection.detected.end))

    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{Path(folder)}/history.db")
        notes = {f"r{number}": [note(number)] for number in range(len(rules))}
        with Desk(f"events:\n  A: {{on: Rows}}\n  B: {{on: Rows}}\nrules:\n{lines}", database, notes) as desk:
            desk.agenda.take(0, desk.detect(*((event, second, {"n": second}) for event, second in rows)))
        ranks = desk.rules.layout.ranks
        with database.begin() as connection:
            asked = (
                'SELECT rules.name, detections."end", min(attempts.started) AS began FROM attempts '
                "JOIN rules ON rules.number = attempts.rule JOIN detections ON detections.id = attempts.detection "
                "GROUP BY 1, 2"
            )
            recorded = connection.execute(text(asked)).all()
        database.close()

    def place(name: str, end: int) -> tuple[int, int, int, int]:
        event, priority, coupling = rules[int(name[1:])]
        if coupling == "immediate":
            return (0, end, ranks[event, None], -priority)
        return (1, -priority, end, ranks[event, None])

    wanted = sum(event == mine for event, _, _ in rules for mine, _ in rows)
    assert len(recorded) == len(order) == wanted
    for one in recorded:
        for other in recorded:
            if place(one.name, one.end) < place(other.name, other.end):
                assert one.began <= other.began, (one, other)
    called = [place(f"r{number}", end) for number, end in order]
    assert called == sorted(called)
