"""What the rules of `ceq_specs/fever.yaml` do."""

import logging

log = logging.getLogger(__name__)


def call_nurse(detection: object) -> None:
    """Call a nurse to the patient."""
    log.warning("call a nurse: %s", detection)
