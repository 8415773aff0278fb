"""Random cases for detection: definitions and rows, for the kernel and for the reference."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from estream.conformance import found_by
from estream.errors import EStreamError
from estream.testing import WHOLE, Cuts
from tests.reference.detection import detect as reference

SECOND = 1_000_000
LEAVES = ("A", "B", "C", "D")
TEMPORAL: dict[str, dict[str, Any]] = {
    "Beat": {"every": 3 * SECOND},
    "Noon": {"at": 7 * SECOND},
    "Minute": {"cron": "* * * * *"},
}
SLOW = 12
"""How many seconds are between rows, instead of one, where minutes are to pass."""
CONTEXTS = ("unrestricted", "recent", "chronicle", "continuous", "cumulative")
MASKS = (
    "{x}.v > 2",
    "{x}.v is not null",
    "{x}.v < {y}.v",
    "{x}.k = {y}.k",
    "{x}.v + {y}.v > {z}.v",
    "count({x}) > 1",
    "sum({x}.v) >= {y}.v",
    "max({x}.v) < 5 or {y}.v / {x}.v > 1",
    "first({x}.v) <= last({x}.v)",
)


@dataclass(frozen=True)
class Case:
    """Events as the vectors have them, temporal ones beside them, and rows; with `arrival` taken as they come."""

    events: dict[str, dict[str, Any]]
    temporal: dict[str, dict[str, Any]]
    rows: list[dict[str, Any]]
    arrival: bool = False

    def by_reference(self) -> list[dict[str, Any]]:
        """What the contract asks for."""
        return reference({**self.temporal, **self.events}, self.rows, list(self.events), arrival=self.arrival)

    def by_kernel(self, cuts: Cuts = WHOLE) -> list[dict[str, Any]]:
        """What EStream detects."""
        order = "arrival" if self.arrival else "event_time"
        vector = {"events": self.events, "input": self.rows, "observe": list(self.events), "order": order}
        return found_by(vector, replace(cuts, seed=None) if self.arrival else cuts, self.schedules)

    @property
    def schedules(self) -> dict[str, dict[str, str]]:
        """The temporal events as a CEQ file has them."""
        return {name: {kind: _written(kind, one[kind]) for kind in one} for name, one in self.temporal.items()}

    @property
    def is_right(self) -> bool:
        """Whether the definitions are free of mistakes: random ones have some."""
        one = {"event": "A", "time": 0, "id": 0, "attrs": {"k": 1, "v": 1}}
        try:
            replace(self, rows=[one]).by_kernel()
        except EStreamError:
            return False
        return True


def _written(kind: str, value: Any) -> str:
    if kind == "at":
        return datetime.fromtimestamp(value / SECOND, UTC).isoformat()
    return f"{value} us" if kind == "every" else str(value)


def arriving(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that differ even where the last time seen takes the place of their own."""
    return [{**one, "id": number} for number, one in enumerate(rows, 1)]


def rows(most: int = 24, apart: int = 1) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows with ties in time, shared ids, null keys and values, and rows that come twice."""
    one = st.fixed_dictionaries(
        {
            "event": st.sampled_from(LEAVES),
            "time": st.integers(0, 16).map(lambda second: second * apart * SECOND),
            "id": st.integers(1, 40),
            "attrs": st.fixed_dictionaries(
                {
                    "k": st.sampled_from((1, 1, 1, 2, 2, None)),
                    "v": st.one_of(st.integers(0, 6), st.none()),
                }
            ),
        }
    )
    unique = st.lists(one, min_size=most // 3, max_size=most, unique_by=_identity)
    return unique.flatmap(lambda found: st.lists(st.sampled_from(found), max_size=2).map(lambda again: found + again))


def _identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["event"], row["time"], row["id"]


def expressions(names: tuple[str, ...], depth: int) -> st.SearchStrategy[str]:
    """Event expressions of at most this depth."""
    leaf = st.sampled_from(names)
    if depth == 0:
        return leaf
    part = expressions(names, depth - 1)
    duration = st.integers(1, 5).map("{} s".format)
    return st.one_of(
        leaf,
        st.builds("({} or {})".format, part, part),
        st.builds("({} and {})".format, part, part),
        st.builds("({} ; {})".format, part, part),
        st.builds("not({})[{}, {}]".format, part, part, part),
        st.builds("A({}, {}, {})".format, part, part, part),
        st.builds("A*({}, {}, {})".format, part, part, part),
        st.builds("P({}, {}, {})".format, part, duration, part),
        st.builds("P*({}, {}, {})".format, part, duration, part),
        st.builds("({} + {})".format, part, duration),
        st.builds("absent({}, {}, {})".format, part, part, duration),
        st.builds("times({}, {})".format, st.integers(2, 3), part),
    )


@st.composite
def definitions(draw: st.DrawFn, names: tuple[str, ...], depth: int) -> dict[str, Any]:
    """A composite event with any of the options."""
    when = draw(expressions(names, depth))
    inside = tuple(leaf for leaf in LEAVES if re.search(rf"\b{leaf}\b(?!\*?\()", when))
    leaves = st.sampled_from(inside or LEAVES)
    keyed = re.findall(r"\b(?:[A-D]|X\d)\b(?!\*?\()", when)
    by_map = st.fixed_dictionaries({name: st.sampled_from((["k"], ["k"], ["v"])) for name in keyed})
    masks = st.builds(str.format, st.sampled_from(MASKS), x=leaves, y=leaves, z=leaves)
    return {
        "when": when,
        "context": draw(st.sampled_from(CONTEXTS)),
        "semantics": draw(st.sampled_from(("interval", "point"))),
        "partition_by": draw(st.one_of(st.just([]), st.just([]), st.just(["k"]), by_map)),
        "within_us": draw(st.sampled_from((None, None, 5 * SECOND, 8 * SECOND))),
        "mask": draw(st.one_of(st.none(), masks, st.builds("{} and {}".format, masks, masks))),
    }


@st.composite
def cases(draw: st.DrawFn, depth: int = 2) -> Case:
    """An event over named events over leaves, in all together an expression of depth three or four."""
    chosen = draw(st.sampled_from(((), (), ("Beat",), ("Noon", "Beat"), ("Minute",))))
    temporal = {name: TEMPORAL[name] for name in chosen}
    names = (*LEAVES, *temporal)
    events: dict[str, dict[str, Any]] = {}
    for name in draw(st.sampled_from(((), ("X1",), ("X1", "X2")))):
        events[name] = draw(definitions(names, 1))
        names = (*names, name)
    events["E1"] = draw(definitions(names, depth))
    given = draw(rows(apart=SLOW if "Minute" in temporal else 1))
    arrival = draw(st.sampled_from((False, False, True)))
    return Case(events, temporal, arriving(given) if arrival else given, arrival)
