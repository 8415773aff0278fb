"""What the rules of `ceq_specs/card_fraud.yaml` ask and do."""

from __future__ import annotations

import logging
from pathlib import Path

PAUSE = Path("data/freezing_is_paused")
"""The fraud desk makes this file while it tests new rules."""

log = logging.getLogger(__name__)


def freezing_is_on(detection: object) -> bool:
    """Whether accounts may be frozen without asking."""
    return not PAUSE.exists()


def block_card(detection: object) -> None:
    """Block the card at once."""
    log.warning("block: %s", detection)


def ask_customer(detection: object) -> None:
    """Send the customer a message: was this you?"""
    log.info("ask: %s", detection)
