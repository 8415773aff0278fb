"""`estream init`: a project that passes `check`."""

import json
from pathlib import Path

import pytest

from estream.app import load
from estream.errors import EStreamError
from estream.init import SCHEMA, create
from estream.settings import load_settings, settings_files
from estream.spec.schema import json_schema


def test_the_new_project_has_no_problems(tmp_path: Path) -> None:
    project = tmp_path / "ward"
    made = {str(path.relative_to(project)) for path in create(project)}
    assert made == {"README.md", "ceq_specs/fever.yaml", SCHEMA, "config/local.yaml", "rules/ward.py"}
    assert load(project / "ceq_specs" / "fever.yaml", {}, project).problems == ()
    assert load_settings(settings_files(project), {}).log.level == "info"


def test_the_ceq_file_names_the_schema_beside_it(tmp_path: Path) -> None:
    create(tmp_path)
    first = (tmp_path / "ceq_specs" / "fever.yaml").read_text().splitlines()[0]
    schema = tmp_path / "ceq_specs" / first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(schema.read_text()) == json_schema()


def test_the_rule_calls_a_function_that_is_there(tmp_path: Path) -> None:
    create(tmp_path)
    assert "def call_nurse(" in (tmp_path / "rules" / "ward.py").read_text()


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(EStreamError, match="not empty"):
        create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EStreamError, match="is a file"):
        create(tmp_path / "file")


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EStreamError, match="Not a directory"):
        create(tmp_path / "file" / "below")
