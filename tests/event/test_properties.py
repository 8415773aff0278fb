"""The kernel gives what the reference gives, and the same however the input comes and the state goes to bytes."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from estream.testing import Cuts
from tests.event.cases import Case, cases


def ordered(found: list[dict[str, Any]]) -> list[str]:
    """In an order that does not depend on who found them."""
    return sorted(json.dumps(one, sort_keys=True) for one in found)


@given(cases())
def test_the_kernel_detects_what_the_reference_detects(case: Case) -> None:
    assume(case.is_right)
    assert ordered(case.by_kernel()) == ordered(case.by_reference())


@given(cases(), st.builds(Cuts, st.integers(2, 8), st.integers(0, 1000)))
def test_cut_shuffled_and_saved_input_gives_the_same(case: Case, cuts: Cuts) -> None:
    assume(case.is_right)
    assert ordered(case.by_kernel(cuts)) == ordered(case.by_kernel())
