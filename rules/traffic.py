"""What the rules of `ceq_specs/car_adn.yaml` do."""

from __future__ import annotations

import logging

log = logging.getLogger(__name__)


def notify_police(detection: object) -> None:
    """Tell the police of the expressway where the accident is."""
    log.warning("police: accident: %s", detection)


def report_accidents(detection: object) -> None:
    """Begin the report of the working day."""
    log.info("report of the last day, asked for by %s", detection)
