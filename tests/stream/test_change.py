"""Requests to a run as files: who asks gets the answer, who does not run is told, and a wrong name is found out."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from estream.app import load
from estream.app_changes import read_overrides, write_overrides
from estream.errors import EStreamError
from estream.spec.override import Overrides
from estream.stream.change import Answer, Desk, Request, desk_of, running

CEQ = """\
version: 1
name: small
streams:
  S: {source: {channel: s}, schema: {ts: timestamp, v: int}, time: ts}
events:
  A: {on: S, mask: v > 3}
  B: {on: S}
  T: {every: 5 min}
  AB: {when: A ; B}
rules:
  Tell: {on: AB, actions: [{log: seen}]}
"""


def answer_all(desk: Desk, answer: Answer, ended: threading.Event) -> None:
    """Give every request the same answer."""
    while not ended.wait(0.01):
        for number, request in desk.pending():
            desk.answer(number, Answer(answer.accepted, (request.text,)))


def test_a_run_answers_what_it_is_asked_in_order(tmp_path: Path) -> None:
    with desk_of(tmp_path / "small") as desk:
        ended = threading.Event()
        thread = threading.Thread(target=answer_all, args=(desk, Answer(True), ended))
        thread.start()
        other = Desk(tmp_path / "small")
        told = [
            other.ask(Request("apply", "ada", file="small.yaml")).told,
            other.ask(Request("mask", "ada", name="A", mask="v > 5")).told,
            other.ask(Request("mask", "ada", name="A")).told,
            other.ask(Request("rule", "ada", name="Tell", enabled=False)).told,
        ]
        ended.set()
        thread.join()
        assert told == [("apply small.yaml",), ('mask A "v > 5"',), ("mask A --clear",), ("rule disable Tell",)]
        assert not list(tmp_path.glob("small/changes/*.json"))


@pytest.mark.parametrize("text", ["no request", "[]", '{"kind": "mask"}', '{"kind": "mask", "by": "ada", "new": 1}'])
def test_what_is_no_request_is_answered_and_harms_no_run(tmp_path: Path, text: str) -> None:
    with desk_of(tmp_path / "small") as desk:
        (tmp_path / "small/changes/7.request.json").write_text(text)
        assert list(desk.pending()) == []
        told = json.loads((tmp_path / "small/changes/7.answer.json").read_text())
        assert not told["accepted"]
        assert "not understood" in told["told"][0]


def test_nothing_is_asked_of_what_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(EStreamError, match="small does not run; start it with `estream run`"):
        Desk(tmp_path / "small").ask(Request("apply", "ada"))
    with desk_of(tmp_path / "small") as desk:
        assert [one.folder.name for one in running(tmp_path)] == ["small"]
        with pytest.raises(EStreamError, match="small runs already"):
            Desk(tmp_path / "small").open()
        with pytest.raises(EStreamError, match="did not answer in time"):
            desk.ask(Request("apply", "ada"), patience=0.0)
    assert running(tmp_path) == []


def test_overrides_count_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(CEQ)
    overrides = Overrides().with_mask("A", "v > 7").with_rule("Tell", False)
    write_overrides(tmp_path, file, overrides)
    assert read_overrides(tmp_path, file) == overrides
    found = load(file, {}, tmp_path, read_overrides(tmp_path, file))
    assert found.plan is not None
    assert [leaf.mask_text for leaf in found.plan.leaves if leaf.name == "A"] == ["v > 7"]
    assert [rule.enabled for rule in found.plan.rules] == [False]
    file.write_text(CEQ.replace("v > 3", "v > 4"))
    assert read_overrides(tmp_path, file).is_empty


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (Overrides(masks={"AA": "v > 1"}), "there is no event 'AA'"),
        (Overrides(masks={"T": "v > 1"}), "event 'T' has no mask"),
        (Overrides(rules={"Tel": True}), "there is no rule 'Tel'; did you mean 'Tell'"),
    ],
)
def test_an_override_of_what_is_not_there_is_refused(tmp_path: Path, overrides: Overrides, said: str) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(CEQ)
    with pytest.raises(EStreamError, match=said):
        load(file, {}, tmp_path, overrides)


def test_a_wrong_mask_is_told_at_its_place(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(CEQ)
    (problem,) = load(file, {}, tmp_path, Overrides(masks={"A": "v > 3 AND w = 1"})).problems
    assert str(problem).startswith("<mask of A>:1:11: event 'A'")
