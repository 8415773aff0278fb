"""The conformance vectors of patterns, whole, cut and shuffled, the state becoming bytes in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from estream.conformance import in_process, run_files
from estream.testing import Cuts

VECTORS = Path(__file__).parent.parent / "conformance" / "patterns.jsonl"


@pytest.mark.parametrize("cuts", [Cuts(), Cuts(count=4), Cuts(count=6, seed=3)], ids=str)
def test_every_vector_gives_what_it_should_however_the_input_is_cut(cuts: Cuts) -> None:
    assert str(run_files([VECTORS], in_process(cuts))) == "150 passed, 0 failed"
