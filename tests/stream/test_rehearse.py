"""Before Spark's workers need it, all that a plan compiles is on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from estream.app import load
from estream.stream.rehearse import rehearse
from tests.stream.project import write_ceq

SPECS = sorted((Path(__file__).parents[2] / "ceq_specs").glob("*.yaml"))
STEP = """
import sys
from pathlib import Path
from numba.core import event
from estream.app import load
from estream.stream.rehearse import rehearse
compiled = []
class Compiled(event.Listener):
    def on_start(self, what):
        compiled.append(what)
    def on_end(self, what):
        pass
found = load(Path(sys.argv[1]), {})
with event.install_listener("numba:compile", Compiled()):
    rehearse(found.plan, found.checked)
print(len(compiled))
"""


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_kind_of_event_and_operator_can_be_rehearsed(path: Path) -> None:
    found = load(path, {})
    assert found.plan is not None
    assert found.checked is not None
    rehearse(found.plan, found.checked)


def test_after_a_rehearsal_another_process_compiles_nothing(tmp_path: Path) -> None:
    path = write_ceq(tmp_path)
    counts = []
    for _ in range(2):
        command = [sys.executable, "-c", STEP, str(path)]
        counts.append(subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout)
    assert counts[-1] == "0\n"
