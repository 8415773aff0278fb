"""`estream check` is quick to start: what is slow to import is not imported."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SLOW = {"pyspark", "numba", "llvmlite", "pandas", "pyarrow", "sqlalchemy"}


def test_check_imports_nothing_slow() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "estream", "check", "ceq_specs/car_adn.yaml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "estream.spec.reader" in imported
    assert {name for name in imported if name.partition(".")[0] in SLOW} == set()
