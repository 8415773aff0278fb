"""Callbacks in processes of their own: a crash, a hang or a hunger for memory harms nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from estream.rule.detection import Detection
from estream.rule.failure import ActionFailed, ActionLate
from estream.rule.message import value_from_message, value_to_message

MEMORY: Final = 4 * 1024**3
"""Address space an isolated callback may have, in bytes."""
START: Final = 30.0
"""Seconds a process may take to import its callback; not counted as time of the action."""


class Isolation:
    """The processes of one callback: one for each call that runs, kept for the next one."""

    def __init__(self, folder: Path, name: str, memory: int = MEMORY) -> None:
        self._command = [sys.executable, "-m", "estream.rule.isolated", str(folder), name, str(memory)]
        self._idle: list[_Process] = []
        self._lock = threading.Lock()

    def perform(self, detection: Detection, seconds: float) -> None:
        """Call the callback; ActionFailed says how it failed. After a hang or a crash the process is gone."""
        with self._lock:
            process = self._idle.pop() if self._idle else None
        process = process or _Process(self._command)
        try:
            answer = process.ask(_message(detection, seconds), seconds)
        except BaseException:
            process.kill()
            raise
        with self._lock:
            self._idle.append(process)
        for event, attributes in answer["raised"]:
            detection.raiser(event, {name: value_from_message(value) for name, value in attributes.items()})
        if answer["error"] is not None:
            raise ActionFailed(answer["error"])

    def close(self) -> None:
        """End the processes that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.kill()


def _message(detection: Detection, seconds: float) -> dict[str, Any]:
    detected = detection.detected
    return {
        "rule": detection.rule,
        "key": detection.idempotency_key,
        "is_repeated": detection.is_repeated,
        "seconds": seconds,
        "event": detected.event,
        "context": detected.context,
        "start": detected.start,
        "end": detected.end,
        "id": detected.id,
        "tick": detected.tick,
        "ticks": detected.ticks,
        "constituents": [
            (one.event, one.id, one.microseconds, {k: value_to_message(v) for k, v in one.attributes.items()})
            for one in detected.constituents
        ],
    }


class _Process:
    """One process, which answers one question at a time."""

    def __init__(self, command: list[str]) -> None:
        # Its own session: a kill reaches what the callback started too.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, env=_environment()
        )
        self._left = b""
        try:
            begun = self._line(START)
        except BaseException:
            self.kill()
            raise
        if "error" in begun:
            self.kill()
            raise ActionFailed(str(begun["error"]))

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode("utf-8") + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ActionFailed(self._death()) from None
        return self._line(seconds)

    def _line(self, seconds: float) -> dict[str, Any]:
        """The next answer; ActionFailed if it does not come in time or the process ends."""
        assert self._process.stdout is not None
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._left:
                if not selector.select(max(until - time.monotonic(), 0)):
                    raise ActionLate(f"took longer than {seconds:g} s; its process was killed")
                piece = os.read(self._process.stdout.fileno(), 65_536)
                if not piece:
                    raise ActionFailed(self._death())
                self._left += piece
        line, _, self._left = self._left.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _death(self) -> str:
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return "its process closed its output"
        if status < 0:
            return f"its process ended by signal {signal.Signals(-status).name}"
        return f"its process ended with status {status}"

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def _environment() -> dict[str, str]:
    """The environment with this program's own import path, so that the same EStream is found."""
    here = str(Path(__file__).resolve().parents[2])
    known = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (here, known)))}
