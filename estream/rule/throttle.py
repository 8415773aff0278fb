"""Throttles: at most one firing of a rule per partition in a time, by the ends of the detections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

LastFired = Callable[[str, list[str]], Mapping[str, int]]
"""Gives for a rule and partitions the end of the detection that each fired last for."""


class Throttle:
    """When each partition of each throttled rule last fired, as far as it was asked for."""

    def __init__(self, last_fired: LastFired, most: int = 100_000) -> None:
        self._last_fired = last_fired
        self._most = most
        self._last: dict[tuple[str, str], int | None] = {}
        self._lock = threading.Lock()

    def prepare(self, rule: str, partitions: Iterable[str]) -> None:
        """Read what is recorded of partitions that are not known yet."""
        if len(self._last) > self._most:
            self._last.clear()
        missing = [one for one in dict.fromkeys(partitions) if (rule, one) not in self._last]
        if missing:
            found = self._last_fired(rule, missing)
            self._last.update({(rule, one): found.get(one) for one in missing})

    def admit(self, rule: str, partition: str, end: int, throttle: int, is_repeated: bool = False) -> bool:
        """Whether a detection that ends then may fire; if so it is the last that did.

        One that `is_repeated` was admitted before: what it began must not keep it out.
        """
        with self._lock:
            if (rule, partition) not in self._last:
                self.prepare(rule, [partition])
            last = self._last[rule, partition]
            if last is not None and end - last < throttle and not (is_repeated and end == last):
                return False
            self._last[rule, partition] = end
            return True
