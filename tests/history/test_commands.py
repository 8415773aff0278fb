"""`estream history`, `history show`, `retry` and `check --imports`, as people and programs call them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from estream.cli import cli
from estream.errors import EStreamError
from estream.history.database import Database
from estream.history.store import DatabaseStore
from estream.rule.detection import Detection
from tests.rule.desk import Desk

TEXT = """
events:
  A: {on: Rows}
rules:
  notify: {on: A, condition: A.x > 1, actions: [{log: "n {A.n}"}], retry: {attempts: 1}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a history of one dead letter, one firing that is done and one that was suppressed."""

    def fail(detection: Detection) -> None:
        if detection.A.n == 1:
            raise ValueError("closed")

    monkeypatch.chdir(tmp_path)
    database = Database(f"sqlite:///{tmp_path}/.estream/history.db")
    with Desk(TEXT, database, {"notify": [fail]}) as desk:
        rows = [("A", n, {"n": n, "x": x}) for n, x in ((1, 2.0), (2, 3.0), (3, 1.0))]
        desk.agenda.take(0, desk.detect(*rows))
    database.close()
    return tmp_path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_history_lists_firings_the_latest_first(project: Path) -> None:
    listed = json.loads(run("history", "--format", "json"))
    assert [(one["id"], one["state"]) for one in listed] == [(3, "suppressed"), (2, "done"), (1, "dead")]
    assert run("history", "--state", "dead", "--format", "csv").splitlines() == [
        "id,end,file,rule,event,partition,state,attempts,error",
        "1,1970-01-01T00:00:01Z,test,notify,A,,dead,1,ValueError: closed",
    ]
    assert run("history", "--until", "1970-01-01T00:00:02Z").splitlines()[1].split() == [
        "1", "1970-01-01T00:00:01Z", "test", "notify", "A", "dead", "1", "ValueError:", "closed"]  # fmt: skip
    assert run("history", "--since", "1 hour") == "no firings\n"


@pytest.mark.parametrize(
    ("since", "count"),
    [
        ("1970-01-01T00:00:01.6Z", 2),
        ("1970-01-01T00:00:02.000001Z", 1),
        ("1970-01-01T01:00:02+01:00", 2),
        ("1969-12-31T19:00:02-05:00", 2),
        ("1970-01-01T00:00:03", 1),
        ("0001-01-01", 3),
        ("9999-12-31T23:59:59.999999Z", 0),
    ],
)
def test_times_are_exact_and_have_time_zones(project: Path, since: str, count: int) -> None:
    assert len(json.loads(run("history", "--since", since, "--format", "json"))) == count


def test_history_show_tells_one_firing_whole(project: Path) -> None:
    shown = run("history", "show", "1")
    assert shown.startswith("firing 1: rule notify of test on A: dead\n")
    assert "A.x = 2.0" in shown
    assert "ValueError: closed" in shown
    assert json.loads(run("history", "show", "3", "--format", "json"))["condition"] == {
        "text": "A.x > 1", "values": {"A.x": 1.0}}  # fmt: skip


def test_counts_of_late_rows_and_dead_letters_are_told_by_source(project: Path) -> None:
    assert run("history", "counts") == "no late rows and no dead letters\n"
    assert json.loads(run("history", "counts", "--format", "json")) == []
    database = Database(f"sqlite:///{project}/.estream/history.db")
    DatabaseStore(database, "test").count(1, [("Rows", "late", 1234), ("Rows", "dead", 1)])
    database.close()
    assert run("history", "counts") == "test: Rows: 1 dead letter\ntest: Rows: 1,234 late rows\n"
    assert json.loads(run("history", "counts", "--format", "json"))[1] == {
        "file": "test", "source": "Rows", "kind": "late", "rows": 1234}  # fmt: skip


def test_retry_asks_for_another_attempt(project: Path) -> None:
    assert run("retry", "--dead") == "1 firing will be tried again\n"
    assert run("retry", "--dead") == "0 firings will be tried again\n"
    with pytest.raises(EStreamError, match="firing 2 is done; only a failed or dead one can be tried again"):
        run("retry", "2")
    with pytest.raises(EStreamError, match="name the firings to retry, or give --dead"):
        run("retry")


def test_what_is_asked_wrongly_is_told_in_one_line(project: Path) -> None:
    with pytest.raises(EStreamError, match="--since is 'soon'; write 2026"):
        run("history", "--since", "soon")
    with pytest.raises(EStreamError, match="the history has no firing 9"):
        run("history", "show", "9")


def test_without_a_history_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EStreamError, match="there is no history at sqlite"):
        run("history")
    assert list(tmp_path.iterdir()) == []


def test_check_imports_tells_wrong_callbacks_at_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "desk.py").write_text("def tell(detection):\n    pass\n")
    (tmp_path / "f.yaml").write_text(
        "version: 1\nstreams:\n  S: {source: {format: memory}, schema: {ts: timestamp}, time: ts}\n"
        "events:\n  A: {on: S}\nrules:\n  r: {on: A, actions: [{python: 'rules.desk:tell'}]}\n"
    )
    assert CliRunner().invoke(cli, ["check", "f.yaml"]).exit_code == 0
    result = CliRunner().invoke(cli, ["check", "--imports", "--format", "json", "f.yaml"])
    assert result.exit_code == 2
    (problem,) = json.loads(result.stdout)["problems"]
    assert (problem["line"], problem["column"]) == (7, 33)
    assert problem["message"] == ("rule 'r': python: 'rules.desk:tell' is not marked; write @estream.action above it")
