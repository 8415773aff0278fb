"""Which rules fire for which detections of a micro-batch: conditions for all of them at once, then throttles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from estream.rule.condition import holds
from estream.rule.layout import keys_of
from estream.rule.partition import partitions_of
from estream.rule.rule import Rule, RuleSet
from estream.rule.store import NewFiring, State
from estream.rule.throttle import Throttle

Firings = Mapping[int, Sequence[NewFiring]]
"""The firings of each detection by its place in the table, each list by falling priority."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What a rule does with the detections of its event: places in the table, and whether its condition holds."""

    rule: Rule
    places: npt.NDArray[np.int64]
    holds: npt.NDArray[np.bool_]


def assign(rules: RuleSet, table: pa.Table, throttle: Throttle) -> Firings:
    """The firings that an ordered table of new detections causes.

    Rules whose condition is Python's are throttled when they run, for their condition is asked then.
    """
    chosen = [_choose(rules, rule, table, places) for rule, places in _by_rule(rules, table)]
    firings: dict[int, list[NewFiring]] = {}
    for one in sorted(chosen, key=lambda one: -one.rule.priority):
        partitions = partitions_of(rules.layout, one.rule.partition, table.take(pa.array(one.places)))
        if one.rule.throttle is not None:
            throttle.prepare(one.rule.name, partitions)
        ends = table.column("end").take(pa.array(one.places)).to_pylist()
        held, places = one.holds.tolist(), one.places.tolist()
        for place, partition, end, does in zip(places, partitions, ends, held, strict=True):
            firings.setdefault(place, []).append(_firing(one.rule, partition, end, does, throttle))
    return firings


def _by_rule(rules: RuleSet, table: pa.Table) -> list[tuple[Rule, npt.NDArray[np.int64]]]:
    keys = keys_of(rules.layout, table)
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    codes = np.array([numbers[key] for key in keys], dtype=np.int64)
    return [
        (rule, np.flatnonzero(codes == number)) for (event, context), number in numbers.items()
        for rule in rules.on(event, context)
    ]  # fmt: skip


def _choose(rules: RuleSet, rule: Rule, table: pa.Table, places: npt.NDArray[np.int64]) -> _Chosen:
    if rule.condition is None:
        return _Chosen(rule, places, np.ones(len(places), dtype=np.bool_))
    return _Chosen(rule, places, holds(rule.condition, rules.layout, table.take(pa.array(places))))


def _firing(rule: Rule, partition: str, end: int, does: bool, throttle: Throttle) -> NewFiring:
    state: State = "pending" if does else "suppressed"
    throttles = does and rule.throttle is not None and rule.test is None
    if throttles and rule.throttle is not None and not throttle.admit(rule.name, partition, end, rule.throttle):
        return NewFiring(rule.name, "throttled", partition or None)
    return NewFiring(rule.name, state, partition or None, throttles)
