"""A second start compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
from numba.core import event

with event.install_recorder("numba:run_pass") as passes:
    from estream.testing import Cuts, detect, row

    rows = [row("A1", 1, k="x", v=1.5), row("B2", 2, k="x", v=2.5), row("C3", 3, k="x", v=3.5)]
    found = detect("absent((A ; B), C, 5 s)", events=rows, partition_by=["k"], mask="A.v < B.v and {mask}")
    found += detect("A ; B", events=rows, partition_by=["k"], cuts=Cuts(3, 1))
print(len(passes.buffer), found)
"""


SMALL = """
from estream.event.compiled import cache_directory
from estream.event.identity import mix

mix(1, 2)
print(cache_directory())
"""


def started(mask: str) -> list[str]:
    """How many passes numba's compiler made in a process of its own, and what was detected."""
    command = [sys.executable, "-c", PROGRAM.replace("{mask}", mask)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split(" ", 1)


def test_a_fresh_process_finds_all_machine_code_on_disk() -> None:
    _, found = started("A.k = 'x'")
    assert started("A.k = 'x'") == ["0", found]


def test_a_mask_never_seen_before_is_compiled() -> None:
    assert int(started(f"A.v < {uuid4().int % 10**12}.5")[0]) > 0


def test_where_nothing_can_be_written_machine_code_lasts_as_long_as_the_process(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    unusable = tmp_path / "file" / "cache"
    environment = {**os.environ, "ESTREAM_CACHE_DIR": str(unusable), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SMALL], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    directory = done.stdout.strip()
    assert not Path(directory).exists()
    assert f"cannot keep machine code in {unusable}" in done.stderr
