"""What the rules of `ceq_specs/stock_surveillance.yaml` do."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


def open_case(detection: object) -> None:
    """Put the trades before a compliance officer."""
    log.warning("case: %s", detection)
