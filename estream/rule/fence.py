"""Threads that run user code behind a fence: who waits for it never waits longer than the time-out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

LOST_MOST: Final = 64
"""Calls that hang past their time-out keep their threads; with so many of them no further call is begun."""
_LOOK: Final = 0.1
"""Seconds after which who waits looks whether a step with a deadline has begun."""


class Call:
    """Work on a thread, step by step: each step has its own deadline, and one that misses it is given up."""

    __slots__ = ("_deadline", "_done", "_is_given_up", "_lock", "run")

    def __init__(self, run: Callable[[Call], None]) -> None:
        """`run` is called on the thread; between steps it asks `claim` whether anybody still waits for it."""
        self.run = run
        self._deadline = float("inf")
        self._is_given_up = False
        self._lock = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()

    def allow(self, seconds: float) -> None:
        """Said by the thread: the step that begins now may take so long."""
        self._deadline = time.monotonic() + seconds

    def claim(self) -> bool:
        """Said by the thread: the step has ended. False if it came too late and counts for nothing."""
        with self._lock:
            self._deadline = float("inf")
            return not self._is_given_up

    @property
    def is_given_up(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._is_given_up

    def finish(self) -> None:
        """Said by the thread: nothing is left to do."""
        self._done.release()

    def wait(self) -> bool:
        """Wait for the end; False if a step missed its deadline, and is given up now."""
        while True:
            left = min(self._deadline - time.monotonic(), _LOOK)
            if self._done.acquire(timeout=max(left, 0)):
                return True
            with self._lock:
                if time.monotonic() >= self._deadline:
                    self._is_given_up = True
                    return False


class Fence:
    """A pool that grows with the calls that are running; a thread whose call hangs is left behind."""

    def __init__(self, name: str = "action") -> None:
        self._name = name
        self._idle: list[SimpleQueue[Call | None]] = []
        self._lock = threading.Lock()
        self._made = 0
        self._busy = 0
        self._waited = 0
        self._is_closed = False

    @property
    def lost(self) -> int:
        """Calls that were given up and still hang."""
        return self._busy - self._waited

    def begin(self, call: Call) -> None:
        """Run a call on a thread of its own; who begins it has to `join` it."""
        with self._lock:
            self._busy += 1
            self._waited += 1
            inbox = self._idle.pop() if self._idle else None
            if inbox is None:
                inbox = SimpleQueue()
                self._made += 1
                name = f"{self._name}-{self._made}"
                threading.Thread(target=self._serve, args=(inbox,), name=name, daemon=True).start()
        inbox.put(call)

    def join(self, call: Call) -> bool:
        """Wait for a call; False if it hangs and was given up."""
        ended = call.wait()
        with self._lock:
            self._waited -= 1
        return ended

    def _serve(self, inbox: SimpleQueue[Call | None]) -> None:
        while (call := inbox.get()) is not None:
            try:
                call.run(call)
            finally:
                with self._lock:
                    self._busy -= 1
                    closed = self._is_closed
                    if not closed:
                        self._idle.append(inbox)
                call.finish()
            if closed:
                return

    def close(self) -> None:
        """Let the threads that are idle end; others end with their calls."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)
