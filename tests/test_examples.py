"""The example CEQ files are right, and the functions they name are there."""

from pathlib import Path

import pytest

from estream.app import load
from estream.rule.registry import Role, find
from estream.spec.model import PythonAction, PythonCondition, Rule

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "ceq_specs").glob("*.yaml"))


def test_there_is_one_for_each_field() -> None:
    assert [path.stem for path in EXAMPLES] == ["car_adn", "card_fraud", "network_faults", "stock_surveillance"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_right_without_any_variable_set(path: Path) -> None:
    loaded = load(path, {}, ROOT)
    assert [str(problem) for problem in loaded.problems] == []
    assert loaded.plan is not None


def callbacks(rule: Rule) -> list[tuple[str, Role]]:
    conditions = [(str(rule.condition.python), "condition")] if isinstance(rule.condition, PythonCondition) else []
    return [*conditions, *((str(one.python), "action") for one in rule.actions if isinstance(one, PythonAction))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_its_callbacks_can_be_called(path: Path) -> None:
    ceq = load(path, {}, ROOT).read.ceq
    assert ceq is not None
    named = [name for rule in ceq.rules.values() for name in callbacks(rule)]
    assert named
    for name, role in named:
        assert callable(find(ROOT / "rules", name, role))
