"""The process is killed while rules call a server: no firing is lost, none is recorded twice (a short fault run)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults.py"


def test_three_kills_lose_nothing_and_record_nothing_twice() -> None:
    command = [sys.executable, str(FAULTS), "--kills", "3", "--batches", "4"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 kills, 320 firings" in run.stdout
