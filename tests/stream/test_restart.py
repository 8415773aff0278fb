"""Started again, a run goes on where it ended: after a stop, after a kill, and with a changed file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from estream.app import RunOptions, job_of
from estream.errors import EStreamError
from estream.stream.change import desk_of
from estream.stream.checkpoint import compare, manifest_of, read_manifest
from estream.stream.runner import refuse_changes
from tests.stream.project import calls, faults, loaded, run_once, write_ceq, write_rows, written
from tests.stream.test_live import before, replayed

CALLS, FAULTS = calls(120), faults(range(3, 110, 9))
LONGEST = 240
"""Seconds that a process may take, on a busy machine."""


def test_stopped_in_the_middle_and_started_with_another_mask_it_keeps_partial_matches(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = write_ceq(tmp_path, short=20)
    write_rows(tmp_path / "calls", CALLS[:60], 60)
    write_rows(tmp_path / "faults", FAULTS[:6], 6)
    _, first = run_once(spark, path)
    # No call after this is short: what is still returned began before the restart.
    write_ceq(tmp_path, short=-1)
    write_rows(tmp_path / "calls", CALLS[60:], 60)
    write_rows(tmp_path / "faults", FAULTS[6:], 6)
    _, both = run_once(spark, path)
    assert all(one in both for one in first)
    later = [one for one in both if one not in first and one["event"] == "Returned"]
    assert later
    assert all(one["constituents"][0]["time"] < "2026-03-01T00:01:00" for one in later)


def test_what_cannot_be_changed_in_place_is_told_before_anything_starts(tmp_path: Path, spark: SparkSession) -> None:
    path = write_ceq(tmp_path, shards=2)
    write_rows(tmp_path / "calls", CALLS[:30], 30)
    write_rows(tmp_path / "faults", FAULTS[:2], 2)
    run_once(spark, path)
    path.write_text(path.read_text().replace("shards: 2", "shards: 4").replace("'20 seconds'", "'30 seconds'"))
    job = job_of(loaded(path), tmp_path, {}, RunOptions(once=True))
    with pytest.raises(EStreamError) as raised:
        refuse_changes(job)
    assert str(raised.value).splitlines()[1:] == [
        "  - it was made with 2 shards, the settings say 4; set detection.shards to 2",
        "  - query 'Busy' has changed, and Spark keeps state for the old one",
        "Undo the change, or start anew with another --checkpoint.",
    ]


def test_a_plan_says_what_is_kept_and_what_starts_empty(tmp_path: Path) -> None:
    path = write_ceq(tmp_path)
    found = loaded(path)
    assert found.plan is not None
    assert found.checked is not None
    manifest = manifest_of(found.plan, found.checked, 2)
    assert compare(None, manifest).is_new
    path.write_text(
        path.read_text().replace("within: 1 minute", "within: 2 minutes").replace("seconds < 20", "seconds < 9")
    )
    changed = loaded(path)
    assert changed.plan is not None
    assert changed.checked is not None
    changes = compare(manifest, manifest_of(changed.plan, changed.checked, 2))
    assert set(changes.kept) == {"Returned", "Trouble", "Surprise"}
    assert changes.empty == ("Crowd",)
    assert changes.dropped == ("Crowd",)
    assert changes.refused == ()


def test_a_damaged_manifest_is_told(tmp_path: Path) -> None:
    (tmp_path / "estream.json").write_text("{")
    with pytest.raises(EStreamError, match=r"estream\.json is damaged"):
        read_manifest(tmp_path)


def start(path: Path, master: str = "local[2]") -> subprocess.Popen[bytes]:
    """`estream run --once`, in a process group of its own."""
    command = [sys.executable, "-m", "estream", "run", str(path), "--once", "--format", "json", "--master", master]
    return subprocess.Popen(
        command, cwd=path.parent, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def told(folder: Path, part: str) -> int:
    """How many files there are: `offsets` of micro-batches begun, their `detections`, `commits` of those done."""
    if part == "detections":
        return len(list((folder / ".estream/phones/detections").glob("*.jsonl")))
    return len(list((folder / ".estream/checkpoints/phones/spark" / part).glob("[0-9]*")))


def come_to(process: subprocess.Popen[bytes], folder: Path, part: str, goal: int) -> None:
    """Wait until there are so many files of a kind, or the process has ended."""
    until = time.monotonic() + LONGEST
    while told(folder, part) < goal and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)


def test_killed_drained_and_ended_on_a_cluster_each_detection_is_written_once(
    tmp_path: Path, spark: SparkSession
) -> None:
    path = write_ceq(tmp_path)
    write_rows(tmp_path / "calls", CALLS, 10)
    write_rows(tmp_path / "faults", FAULTS, 1)
    for part, goal in (("offsets", 2), ("detections", 1)):
        process = start(path)
        come_to(process, tmp_path, part, goal)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    for number in (signal.SIGTERM, signal.SIGINT):
        process = start(path)
        come_to(process, tmp_path, "commits", told(tmp_path, "commits") + 2)
        # As a terminal does it: to the whole group.
        os.killpg(process.pid, number)
        _, said = process.communicate(timeout=LONGEST)
        assert process.returncode == 0, said.decode()
        assert b"Traceback" not in said
        # What was begun is done.
        assert told(tmp_path, "offsets") - told(tmp_path, "commits") <= 1
    assert told(tmp_path, "commits") < 12
    # Two executors of their own: nothing may depend on the memory or the working folder of the driver.
    last = start(path, "local-cluster[2,1,1024]")
    _, said = last.communicate(timeout=LONGEST)
    assert last.returncode == 0, said.decode()
    assert told(tmp_path, "commits") >= 12
    found = written(tmp_path / ".estream/phones/detections")
    progress = json.loads((tmp_path / ".estream/checkpoints/phones/progress.json").read_text())
    assert found == before(path, replayed(spark, path), progress["watermark"])
    assert found


def test_who_asks_twice_does_not_wait(tmp_path: Path) -> None:
    path = write_ceq(tmp_path)
    process = start(path)
    until = time.monotonic() + LONGEST
    while not (tmp_path / ".estream/phones/spark.log").exists() and time.monotonic() < until:
        time.sleep(0.01)
    while process.poll() is None and time.monotonic() < until:
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.05)
    _, said = process.communicate()
    assert process.returncode == 130, said.decode()
    assert said == b""


def test_a_checkpoint_is_for_one_run(tmp_path: Path) -> None:
    path = write_ceq(tmp_path)
    with desk_of(tmp_path / ".estream/checkpoints/phones"):
        second = start(path)
        _, said = second.communicate(timeout=LONGEST)
    assert second.returncode == 2
    assert said.decode().startswith("phones runs already with the checkpoint ")
