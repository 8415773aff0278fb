"""Calling Python callbacks: plain ones on the thread they are given, async ones on one loop for all of them."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, Final

from estream.rule.detection import Detection
from estream.rule.failure import ActionFailed, ActionLate
from estream.rule.registry import Callback

_TURN: Final = 0.2
"""Seconds in which a loop that is not blocked comes round."""


class Loop:
    """One event loop on its own thread, begun by the first async callback: clients made in callbacks stay usable."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any], seconds: float) -> Any:
        """What the coroutine returns; it is cancelled after so many seconds."""
        future = asyncio.run_coroutine_threadsafe(_fenced(coroutine), self._running())
        try:
            return future.result(timeout=seconds)
        except TimeoutError:
            if future.done():
                raise
            future.cancel()
            self._leave_if_stuck()
            raise ActionLate(f"took longer than {seconds:g} s and was cancelled") from None
        except CancelledError:
            raise ActionFailed("was cancelled") from None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="async-actions", daemon=True)
                self._thread.start()
            return self._loop

    def _leave_if_stuck(self) -> None:
        """Begin another loop if a callback blocks this one: the others must not wait for it."""
        loop, turned = self._loop, threading.Event()
        if loop is None:
            return
        loop.call_soon_threadsafe(turned.set)
        if not turned.wait(_TURN):
            with self._lock:
                if self._loop is loop:
                    self._loop = None

    def close(self) -> None:
        """Stop the loop."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(timeout=5)
            if not thread.is_alive():
                loop.close()


async def _fenced(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What the coroutine returns; one that wants to end the program would end the loop of all others."""
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt) as error:
        raise ActionFailed(f"{type(error).__name__}: {error}") from None


def call(function: Callback, detection: Detection, seconds: float, loop: Loop) -> Any:
    """What the callback returns for a detection."""
    process = os.getpid()
    try:
        result = function(detection)
        if inspect.iscoroutine(result):
            return loop.run(result, seconds)
        return result
    finally:
        if os.getpid() != process:
            # A process that the callback forked came back too: it must not go on with the work of this one.
            os._exit(0)
