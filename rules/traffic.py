"""What the rules of `ceq_specs/car_adn.yaml` do."""

from __future__ import annotations

import logging

from estream import Detection, action

log = logging.getLogger(__name__)


@action
def notify_police(detection: Detection) -> None:
    """Tell the police of the expressway where the accident is."""
    log.warning("police: accident: %s", detection)


@action
def report_accidents(detection: Detection) -> None:
    """Begin the report of the working day."""
    log.info("report of the last day, asked for by %s", detection)
