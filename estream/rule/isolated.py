"""The process of an isolated callback: reads detections, calls the function, answers with what came of it.

`python -m estream.rule.isolated FOLDER MODULE:FUNCTION BYTES` is started by `estream.rule.isolation`. Messages are
lines of JSON: a detection comes in; one answer goes out, on a copy of the standard output, so that what the callback
prints cannot be taken for an answer.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from estream.rule.callback import Loop, call
from estream.rule.detection import Detected, Detection, Occurrence
from estream.rule.failure import reason
from estream.rule.message import value_from_message, value_to_message
from estream.rule.registry import Callback, find

_LOOK: Final = 1.0
"""Seconds between looks at whether the program is still there."""


def main() -> None:
    """Serve until the standard input ends."""
    folder, name, memory = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    questions = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    memory = memory if most == resource.RLIM_INFINITY else min(memory, most)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        function = find(folder, name, "action")
    except Exception as error:
        _answer(answers, {"error": reason(error), "raised": []})
        return
    _answer(answers, {"ready": True})
    loop = Loop()
    for line in questions:
        _answer(answers, _perform(function, json.loads(line), loop))


def _end_with(parent: int) -> None:
    """End this process when the one that asks has ended, whatever the callback does: nobody else would."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)


def _perform(function: Callback, message: Mapping[str, Any], loop: Loop) -> dict[str, Any]:
    raised: list[tuple[str, dict[str, Any]]] = []

    def raise_event(event: str, attributes: Mapping[str, Any]) -> None:
        raised.append((event, {name: value_to_message(value) for name, value in attributes.items()}))

    try:
        call(function, _detection(message, raise_event), float(message["seconds"]), loop)
    except Exception as error:
        return {"error": reason(error), "raised": raised}
    return {"error": None, "raised": raised}


def _detection(message: Mapping[str, Any], raiser: Any) -> Detection:
    parts = tuple(
        Occurrence(event, number, time, {name: value_from_message(value) for name, value in attributes.items()})
        for event, number, time, attributes in message["constituents"]
    )
    ticks = message["ticks"]
    detected = Detected(
        message["event"], message["context"], message["start"], message["end"], message["id"], parts, message["tick"],
        None if ticks is None else tuple(ticks),
    )  # fmt: skip
    return Detection(detected, message["rule"], message["key"], raiser, message["is_repeated"])


def _answer(answers: IO[str], message: Mapping[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
