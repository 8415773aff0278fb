"""Cascades: events that actions raise, with a limit to how deep one can lead to the next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from estream.rule.detection import Detected
from estream.rule.failure import ActionRefused
from estream.rule.store import Raised
from estream.suggest import suggestion

REMEMBERED: Final = 100_000


class Cascade:
    """Raises events and knows how deep each was raised."""

    def __init__(
        self,
        raised: Mapping[str, tuple[str, ...]],
        limit: int,
        raise_event: Callable[[str, Mapping[str, Any], str, bool], int],
        recorded_depth: Callable[[str, int], int],
    ) -> None:
        """`raised` are the events and their attributes; `recorded_depth` is asked for events not remembered here."""
        self._raised, self._limit = raised, limit
        self._raise_event, self._recorded_depth = raise_event, recorded_depth
        self._depths: OrderedDict[tuple[str, int], int] = OrderedDict()
        self._lock = threading.Lock()

    def depth_of(self, detected: Detected) -> int:
        """How deep a detection stands: as deep as the deepest raised event it is made of."""
        if not self._raised:
            return 0
        mine = [(one.event, one.microseconds) for one in detected.constituents if one.event in self._raised]
        return max(map(self._depth, mine), default=0)

    def _depth(self, key: tuple[str, int]) -> int:
        with self._lock:
            if key in self._depths:
                return self._depths[key]
        depth = self._recorded_depth(*key)
        self._remember(key, depth)
        return depth

    def _remember(self, key: tuple[str, int], depth: int) -> None:
        with self._lock:
            self._depths[key] = depth
            if len(self._depths) > REMEMBERED:
                self._depths.popitem(last=False)

    def raise_event(
        self, detected: Detected, event: str, attributes: Mapping[str, Any], key: str, is_repeated: bool
    ) -> Raised:
        """Raise an event because of a detection, once for the key; ActionRefused if it is wrong, or one too deep."""
        self._require_right(event, attributes)
        depth = self.depth_of(detected) + 1
        if depth > self._limit:
            raise ActionRefused(
                f"event '{event}' is raised {depth} rules deep and the limit is {self._limit} (rules.cascade_depth): "
                f"rules on '{detected.event}' and '{event}' raise each other without end"
            )
        time = self._raise_event(event, attributes, key, is_repeated)
        self._remember((event, time), depth)
        return Raised(event, time, depth)

    def _require_right(self, event: str, attributes: Mapping[str, Any]) -> None:
        if event not in self._raised:
            raise ActionRefused(f"there is no raised event '{event}'; {suggestion(event, self._raised)}")
        wanted = self._raised[event]
        missing = [name for name in wanted if name not in attributes]
        extra = [name for name in attributes if name not in wanted]
        if missing or extra:
            said = [f"lacks {', '.join(missing)}"] if missing else []
            said += [f"gives {', '.join(extra)} beyond {', '.join(wanted) or 'none'}"] if extra else []
            raise ActionRefused(f"event '{event}' {' and '.join(said)}")
