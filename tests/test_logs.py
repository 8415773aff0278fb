"""The log: lines for people, JSON for programs, and nothing below the level that is asked for."""

from __future__ import annotations

import io
import json
import logging

from estream.logs import logging_to
from estream.settings import LogSettings

RULES = logging.getLogger("estream.rules")


def test_lines_have_time_level_and_origin_and_cannot_move_the_cursor() -> None:
    out = io.StringIO()
    with logging_to(LogSettings(level="info"), out):
        RULES.info("notify: \x1b[2Jpatient %s\nand more", 7)
        RULES.debug("not asked for")
    RULES.warning("after the end")
    (line,) = out.getvalue().splitlines()
    assert line.partition("Z ")[2] == "info rules: notify: \N{REPLACEMENT CHARACTER}[2Jpatient 7 and more"


def test_json_has_the_key_of_the_firing() -> None:
    out = io.StringIO()
    with logging_to(LogSettings(level="debug", format="json"), out):
        RULES.warning("notify", extra={"key": "car_adn.notify-00-0"})
    said = json.loads(out.getvalue())
    assert (said["level"], said["message"], said["key"]) == ("warning", "notify", "car_adn.notify-00-0")
