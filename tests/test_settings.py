"""Settings come in layers, and every mistake in them has its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from estream.errors import EStreamError
from estream.settings import Settings, load_settings, settings_files

ROOT = Path(__file__).parent.parent


def written(folder: Path, text: str) -> Path:
    file = folder / "local.yaml"
    file.write_text(text)
    return file


def test_default_file_says_every_default() -> None:
    loaded = load_settings([ROOT / "config/default.yaml"], {})
    assert loaded == Settings()
    assert loaded.model_fields_set == set(Settings.model_fields)
    assert all(
        getattr(loaded, name).model_fields_set == set(type(getattr(loaded, name)).model_fields)
        for name in Settings.model_fields
    )


def test_project_has_both_files() -> None:
    assert [file.name for file in settings_files(ROOT)] == ["default.yaml", "local.yaml"]


def test_later_layers_go_over_earlier_ones(tmp_path: Path) -> None:
    file = written(tmp_path, "log: {level: debug, format: json}\ndetection: {shards: 8}\n")
    loaded = load_settings([ROOT / "config/default.yaml", file], {"ESTREAM_LOG__LEVEL": "error"})
    assert (loaded.log.level, loaded.log.format, loaded.detection.shards) == ("error", "json", 8)


def test_environment_gives_numbers_flags_and_durations() -> None:
    environment = {
        "ESTREAM_DETECTION__SHARDS": "3",
        "ESTREAM_RULES__ALLOW_PRIVATE": "true",
        "ESTREAM_HISTORY__KEEP": "1 d",
    }
    loaded = load_settings([], environment)
    assert (loaded.detection.shards, loaded.rules.allow_private) == (3, True)
    assert loaded.history.keep.microseconds == 86_400_000_000


def test_mistakes_have_their_places(tmp_path: Path) -> None:
    file = written(tmp_path, "log:\n  levl: info\ndetection: {shards: none}\n")
    with pytest.raises(EStreamError) as caught:
        load_settings([file], {"ESTREAM_LOG__FORMAT": "xml", "ESTREAM_LOG__LEVL": "info"})
    assert {str(problem) for problem in caught.value.problems} == {
        "ESTREAM_LOG__FORMAT:1:1: settings: log.format is the text '${ESTREAM_LOG__FORMAT}'; right: text, json",
        "ESTREAM_LOG__LEVL:1:1: there is no such setting; did you mean 'ESTREAM_LOG__LEVEL'?",
        f"{file}:2:3: unknown key 'levl' in settings: log; did you mean 'level'?",
        f"{file}:3:21: settings: detection.shards is the text 'none', not a whole number",
    }


def test_single_underscore_is_told() -> None:
    with pytest.raises(EStreamError, match="did you mean 'ESTREAM_LOG__LEVEL'"):
        load_settings([], {"ESTREAM_LOG_LEVEL": "info"})


def test_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(EStreamError, match="no such file"):
        load_settings([tmp_path / "none.yaml"], {})


def test_the_page_of_settings_lists_every_one_with_its_default() -> None:
    page = (ROOT / "docs/settings.md").read_text()
    for name, section in Settings():
        listed = page.split(f"## `{name}`\n")[1].split("\n## ")[0]
        for key, field in type(section).model_fields.items():
            assert f"| `{key}` | `{field.default}` | {field.description} |" in listed


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(EStreamError, match="it is no regular file"):
        load_settings([tmp_path / "pipe.yaml"], {})
