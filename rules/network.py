"""What the rules of `ceq_specs/network_faults.yaml` do."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


def open_ticket(detection: object) -> None:
    """Open a ticket in the operations centre for the fault."""
    log.warning("ticket: %s", detection)


def poll(detection: object) -> None:
    """Ask a silent device for a sign of life."""
    log.info("poll: %s", detection)
