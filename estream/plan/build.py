"""From a checked CEQ file to the plan, by passes that stand in one tuple."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from estream.errors import Problem
from estream.plan.bound import bound
from estream.plan.cut import cut
from estream.plan.detach import detach
from estream.plan.draft import Draft
from estream.plan.group import group
from estream.plan.inherit import inherit
from estream.plan.model import Plan
from estream.plan.need import need
from estream.plan.parts import queries, rules, streams, tables
from estream.plan.place import place
from estream.plan.resolve import resolve
from estream.plan.separate import separate
from estream.plan.share import share
from estream.spec.checked import Checked

Pass: TypeAlias = Callable[[Draft], Draft]

PASSES: tuple[tuple[Pass, str], ...] = (
    (resolve, "find every named event, and what is subscribed to in which context"),
    (inherit, "give every part of an expression its context, semantics, within and partition"),
    (place, "put every conjunct of a mask at the node where it is asked"),
    (cut, "relay named events whose occurrences are partitioned otherwise"),
    (share, "make the nodes with their signatures, equal ones once"),
    (detach, "copy what is shared where the same rows have different keys"),
    (separate, "copy what would have to run both before and after a relay"),
    (group, "group the nodes that are partitioned alike, and order the groups in stages"),
    (bound, "bound the state of every node and collect the timers"),
    (need, "keep of every row the columns that are asked for"),
)
"""The order of the work, and what each pass does."""


def build(checked: Checked, observe: Iterable[str] = ()) -> tuple[Plan, list[Problem]]:
    """The plan, and every problem found on the way; with an error among them the plan has no nodes.

    `observe` names events the caller listens to besides those that rules and publications ask for.
    """
    draft = Draft(checked, tuple(observe))
    for work, _ in PASSES:
        draft = work(draft)
    plan = Plan(
        str(checked.ceq.name),
        checked.ceq.order,
        streams(checked),
        queries(checked),
        draft.leaves,
        draft.temporals,
        draft.patterns,
        draft.nodes,
        draft.subscriptions,
        rules(checked),
        draft.events,
        draft.timers,
        tables(checked),
    )
    return plan, list(dict.fromkeys(draft.problems))
