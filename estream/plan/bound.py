"""Ninth pass: how much every node keeps for one key, with a warning where nothing bounds it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from estream.errors import Problem
from estream.plan.draft import TIMED, Definition, Draft, Part, parts
from estream.plan.model import Bound, Context, Node, NodeOperator
from estream.spec.model import PatternEvent
from estream.spec.regex import is_unbounded, parse_pattern

_WAITING: frozenset[NodeOperator] = frozenset({";", "and", "not", "A", "P"})
"""Keep every initiator that waits, in `recent` only one."""

_RECORDING: frozenset[NodeOperator] = frozenset({"A*", "P*"})
"""Keep what happens in a window too, so that even one window grows."""


def bound(draft: Draft) -> Draft:
    """Nodes with the bound of their state, and the list of those with timers."""
    nodes = tuple(replace(node, bound=_node_bound(draft, node)) for node in draft.nodes)
    timers = tuple(node.number for node in nodes if node.operator in TIMED or node.operator == "temporal")
    warnings = [problem for definition in draft.definitions.values() for problem in _warnings(definition)]
    return replace(draft, nodes=nodes, timers=timers, problems=(*draft.problems, *warnings))


def state_bound(operator: NodeOperator, context: Context, within: int | None) -> Bound:
    """What bounds the state of an operator. Timers keep what their duration holds, `times` fewer than n."""
    grows = operator in _RECORDING or (operator in _WAITING and context != "recent")
    if not grows:
        return "bounded"
    return "unbounded" if within is None else "bounded by within"


def _node_bound(draft: Draft, node: Node) -> Bound:
    if node.operator != "pattern":
        return state_bound(node.operator, node.context, node.within)
    spec = draft.checked.events[node.source or ""].spec
    if not isinstance(spec, PatternEvent) or not is_unbounded(parse_pattern(spec.pattern)):
        return "bounded"
    return "unbounded" if spec.within is None else "bounded by within"


def _warnings(definition: Definition) -> Iterator[Problem]:
    """One warning for an event, at the first operator that may grow."""
    growing = (part for part in parts(definition.root) if _grows(part, definition))
    first = next(growing, None)
    if first is not None:
        start, end = first.span
        message = (
            f"event '{definition.name}': '{first.operator}' in context {definition.context} keeps more and more; "
            "nothing bounds its state"
        )
        yield definition.text.problem(message, start, end - start, "give the event `within`", "warning")


def _grows(part: Part, definition: Definition) -> bool:
    return state_bound(part.operator, definition.context, definition.within) == "unbounded"
