"""Circuit breakers: a sink that failed several times in a row is left alone for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

FAILURES: Final = 5
"""So many failures in a row open the circuit."""
REST: Final = 5_000_000
"""Microseconds it stays open at first; doubles each time the one trial after it fails."""
LONGEST_REST: Final = 300_000_000


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    rest: int = REST
    until: int = 0
    trying: bool = False


class Breakers:
    """The circuits of all sinks. `clock` gives microseconds."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._circuits: dict[str, _Circuit] = {}
        self._lock = threading.Lock()

    def wait(self, sink: str) -> int | None:
        """When the sink may be tried again; None if it may be tried now. After a rest one trial is let through."""
        circuit = self._circuits.get(sink)
        if circuit is None or circuit.failures < FAILURES:
            return None
        with self._lock:
            now = self._clock()
            if now < circuit.until:
                return circuit.until
            if circuit.trying:
                return now + circuit.rest
            circuit.trying = True
            return None

    def release(self, sink: str) -> None:
        """Tell that an attempt says nothing about the sink: the next one may try it."""
        with self._lock:
            if sink in self._circuits:
                self._circuits[sink].trying = False

    def report(self, sink: str, succeeded: bool) -> None:
        """Tell how an attempt ended."""
        if succeeded:
            self._circuits.pop(sink, None)
            return
        with self._lock:
            circuit = self._circuits.setdefault(sink, _Circuit())
            circuit.failures += 1
            if circuit.failures >= FAILURES:
                circuit.until = self._clock() + circuit.rest
                circuit.rest = min(2 * circuit.rest, LONGEST_REST)
                circuit.trying = False

    def leave_alone(self, sink: str, microseconds: int) -> None:
        """Tell that the sink asked to be left alone for so long."""
        with self._lock:
            circuit = self._circuits.setdefault(sink, _Circuit())
            circuit.failures = max(circuit.failures, FAILURES)
            circuit.until = max(circuit.until, self._clock() + microseconds)

    def open(self) -> dict[str, int]:
        """The sinks that are left alone, and until when."""
        return {sink: one.until for sink, one in list(self._circuits.items()) if one.failures >= FAILURES}
