"""What the rules of `ceq_specs/stock_surveillance.yaml` do."""

from __future__ import annotations

import logging

from estream import Detection, action

log = logging.getLogger(__name__)


@action
def open_case(detection: Detection) -> None:
    """Put the trades before a compliance officer."""
    log.warning("case: %s", detection)
