"""What the rules of `ceq_specs/fever.yaml` do."""

import logging

from estream import Detection, action

log = logging.getLogger(__name__)


@action
def call_nurse(detection: Detection) -> None:
    """Call a nurse to the patient."""
    log.warning("call a nurse: %s", detection)
