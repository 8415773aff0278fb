"""What the rules of `ceq_specs/network_faults.yaml` do."""

from __future__ import annotations

import logging

from estream import Detection, action

log = logging.getLogger(__name__)


@action
def open_ticket(detection: Detection) -> None:
    """Open a ticket in the operations centre for the fault."""
    log.warning("ticket: %s", detection)


@action
def poll(detection: Detection) -> None:
    """Ask a silent device for a sign of life."""
    log.info("poll: %s", detection)
