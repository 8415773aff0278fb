"""Circuit breakers: a sink that is down is left alone, tried once after a rest, and used again when it is back."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from estream.history.database import Database
from estream.rule.breaker import FAILURES, REST, Breakers
from tests.rule.desk import Desk, settings


def test_a_circuit_opens_after_failures_in_a_row_and_lets_one_trial_through_after_a_rest() -> None:
    now = [0]
    breakers = Breakers(lambda: now[0])
    for _ in range(FAILURES):
        assert breakers.wait("hook") is None
        breakers.report("hook", False)
    assert breakers.wait("hook") == REST
    assert breakers.wait("other") is None
    now[0] = REST
    assert breakers.wait("hook") is None
    assert breakers.wait("hook") == 2 * REST + REST
    breakers.report("hook", False)
    assert breakers.wait("hook") == REST + 2 * REST
    now[0] = 4 * REST
    assert breakers.wait("hook") is None
    breakers.report("hook", True)
    assert breakers.wait("hook") is None
    assert breakers.open() == {}


def test_one_success_among_failures_keeps_the_circuit_closed() -> None:
    breakers = Breakers(lambda: 0)
    for place in range(3 * FAILURES):
        breakers.report("hook", place % FAILURES == 0)
    assert breakers.wait("hook") is None


def test_firings_of_a_sink_that_is_down_wait_without_losing_attempts(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/history.db")
    down = "file: {path: taken/out.jsonl}"
    (tmp_path / "taken").write_text("a file where the folder should be")
    lines = (
        f"events:\n  A: {{on: Rows}}\nrules:\n  r:\n    on: A\n    actions: [{{{down}}}]\n    retry: {{attempts: 1}}\n"
    )
    from estream.rule.action import Services

    with Desk(lines, database, settings=settings(), services=Services(root=tmp_path)) as desk:
        desk.agenda.take(0, desk.detect(*(("A", n, {"n": n}) for n in range(FAILURES + 3))))
        assert list(desk.agenda.status().open_circuits) == ["file taken/out.jsonl"]
        with database.begin() as connection:
            asked = text("SELECT state, attempts, count(*) AS number FROM firings GROUP BY 1, 2 ORDER BY 1")
            rows = [tuple(row) for row in connection.execute(asked)]
            tried = connection.execute(text("SELECT count(*) FROM attempts")).scalar()
    assert rows == [("dead", 1, FAILURES), ("failed", 0, 3)]
    assert tried == FAILURES
