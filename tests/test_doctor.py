"""Findings about a machine, each with what to do."""

import os
from pathlib import Path

import pytest

from estream.doctor import GIGABYTE, cores, examine, folder, java, libraries, memory, python, spark, time_zones


def java_that_says(folder: Path, words: str) -> dict[str, str]:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{words}' >&2\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder), "PATH": os.environ["PATH"]}


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "ok"),
        ('openjdk version "21" 2023-09-19', "ok"),
        ('java version "11.0.2"', "fail"),
        ('java version "1.8.0_292"', "fail"),
        ("no java here", "fail"),
    ],
)
def test_java_must_be_17_or_newer(tmp_path: Path, words: str, status: str) -> None:
    finding = java(java_that_says(tmp_path, words))
    assert finding.status == status
    assert str(tmp_path) in finding.found
    assert (finding.advice is None) == (status == "ok")


def test_a_java_home_without_java_fails(tmp_path: Path) -> None:
    finding = java({"JAVA_HOME": str(tmp_path)})
    assert finding.status == "fail"
    assert finding.advice is not None
    assert "Java 17" in finding.advice


def test_another_spark_is_warned_of() -> None:
    assert spark({}).status == "ok"
    assert spark({"SPARK_HOME": "/opt/spark"}).status == "warn"


def test_python_memory_and_cores() -> None:
    assert [python((3, 11, 0)).status, python((3, 10, 9)).status] == ["ok", "fail"]
    assert [memory(8 * GIGABYTE).status, memory(GIGABYTE).status, memory(None).status] == ["ok", "warn", "warn"]
    assert [cores(2).status, cores(1).status] == ["ok", "warn"]


def test_a_folder_that_can_be_made_is_fine_and_a_file_is_not(tmp_path: Path) -> None:
    assert folder("paths.state", tmp_path / "a" / "b").status == "ok"
    (tmp_path / "file").touch()
    finding = folder("paths.state", tmp_path / "file")
    assert finding.status == "fail"
    assert finding.advice is not None
    assert "paths.state" in finding.advice


def test_libraries_are_held_against_their_ranges() -> None:
    found = libraries(["pydantic>=2", "pydantic<1", "no-such-library>=1", "ruff>=9999; extra == 'dev'"])
    assert [finding.status for finding in found] == ["ok", "warn", "fail"]


def test_time_zones_are_there() -> None:
    assert time_zones().status == "ok"


def test_everything_is_examined(tmp_path: Path) -> None:
    names = {finding.name for finding in examine({"paths.state": tmp_path}, os.environ)}
    expected = {"python", "java", "spark", "memory", "cores", "folder paths.state", "library pyspark", "time zones"}
    assert expected <= names
