"""A second start finds the machine code of a pattern on disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
from numba.core import event

with event.install_recorder("numba:run_pass") as passes:
    from estream.testing import Cuts, Row, match

    rows = [Row("A", at, at, {"k": "x", "v": value}) for at, value in enumerate([1, 4, 5, 2])]
    define = {"up": "v > last(v) AND k = 'x'", "down": "v < max(v)"}
    output = {"all": "collect(v)"}
    found = match(". up+ down", define=define, rows=rows, output=output, partition_by=["k"], cuts=Cuts(3, 1))
print(len(passes.buffer), [one.rows for one in found])
"""


def test_a_fresh_process_compiles_nothing() -> None:
    def started() -> str:
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    started()
    assert started() == "0 [(0, 1, 2, 3)]\n"
