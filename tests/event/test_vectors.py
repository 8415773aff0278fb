"""The conformance vectors, whole and cut: every operator in every context gives what the contract says."""

from __future__ import annotations

from pathlib import Path

import pytest

from estream.conformance import in_process, run_files
from estream.testing import Cuts

VECTORS = Path(__file__).parent.parent / "conformance"
FILES = [VECTORS / "events_basic.jsonl", VECTORS / "events_nested.jsonl"]


@pytest.mark.parametrize("cuts", [Cuts(), Cuts(count=2), Cuts(count=4, seed=1), Cuts(count=9, seed=2)], ids=str)
def test_every_vector_gives_what_it_should_however_the_input_is_cut(cuts: Cuts) -> None:
    assert str(run_files(FILES, in_process(cuts))) == "733 passed, 0 failed"
