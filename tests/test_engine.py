"""EStream from Python: what is wrong with a file or a callback is told before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from estream import Engine
from estream.errors import EStreamError

FILE = Path(__file__).parents[1] / "ceq_specs" / "car_adn.yaml"


def test_callbacks_are_registered_on_rules_and_events() -> None:
    engine = Engine(FILE)
    assert engine.on("AccidentNotify", print) is engine
    assert engine.on("EAccident", lambda detection: None) is engine


def test_a_name_that_is_neither_rule_nor_event_is_told() -> None:
    with pytest.raises(EStreamError, match=r"there is no rule and no event 'AccidentNotfy'; .*AccidentNotify"):
        Engine(FILE).on("AccidentNotfy", print)


def test_a_function_that_takes_no_detection_is_told() -> None:
    def nothing() -> None:
        return

    with pytest.raises(EStreamError, match="cannot be called with a detection alone; give it one parameter"):
        Engine(FILE).on("AccidentNotify", nothing)


def test_a_wrong_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(EStreamError, match="no such file"):
        Engine(tmp_path / "nothing.yaml")
    (tmp_path / "wrong.yaml").write_text("version: 1\nevents:\n  A: {on: Nowhere}\n")
    with pytest.raises(EStreamError, match=r"wrong\.yaml:3"):
        Engine(tmp_path / "wrong.yaml")
