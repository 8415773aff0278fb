"""What the rules of `ceq_specs/card_fraud.yaml` ask and do."""

from __future__ import annotations

import logging
from pathlib import Path

from estream import Detection, action, condition

PAUSE = Path("data/freezing_is_paused")
"""The fraud desk makes this file while it tests new rules."""

log = logging.getLogger(__name__)


@condition
def freezing_is_on(detection: Detection) -> bool:
    """Whether accounts may be frozen without asking."""
    return not PAUSE.exists()


@action
def block_card(detection: Detection) -> None:
    """Block the card at once."""
    log.warning("block: %s", detection)


@action
def ask_customer(detection: Detection) -> None:
    """Send the customer a message: was this you?"""
    log.info("ask: %s", detection)
