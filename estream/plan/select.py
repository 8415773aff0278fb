"""`--select`: the parts of a plan around a name, as `name`, `name+` (what depends on it), `+name` (what it needs)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from estream.errors import EStreamError
from estream.plan.model import Plan
from estream.suggest import suggestion


def select(plan: Plan, selection: str) -> Plan:
    """The plan with the selected parts only; its nodes keep their numbers."""
    name = selection.strip().strip("+")
    needs = dependencies(plan)
    if name not in needs:
        raise EStreamError(f"nothing in the plan is called '{name}'; {suggestion(name, needs)}")
    chosen = {name}
    if selection.strip().startswith("+"):
        chosen |= _closure(name, needs)
    if selection.strip().endswith("+"):
        chosen |= _closure(name, _turned(needs))
    return replace(
        plan,
        streams=tuple(each for each in plan.streams if each.name in chosen),
        tables=tuple(each for each in plan.tables if each.name in chosen),
        queries=tuple(each for each in plan.queries if each.name in chosen),
        leaves=tuple(each for each in plan.leaves if each.name in chosen),
        temporals=tuple(each for each in plan.temporals if each.name in chosen),
        patterns=tuple(each for each in plan.patterns if each.name in chosen),
        events=tuple(each for each in plan.events if each[0] in chosen),
        subscriptions=tuple(each for each in plan.subscriptions if each.event in chosen),
        rules=tuple(each for each in plan.rules if each.name in chosen),
    )


def dependencies(plan: Plan) -> Mapping[str, set[str]]:
    """Every named part and what it needs directly."""
    needs: dict[str, set[str]] = {stream.name: set() for stream in plan.streams}
    needs |= {table.name: set() for table in plan.tables}
    needs |= {query.name: set(query.reads) for query in plan.queries}
    needs |= {leaf.name: set() if leaf.raised else {leaf.query} for leaf in plan.leaves}
    needs |= {temporal.name: set() for temporal in plan.temporals}
    needs |= {pattern.name: {pattern.query} for pattern in plan.patterns}
    nodes = [*plan.events, *((each.event, each.node) for each in plan.subscriptions)]
    for event, node in nodes:
        needs.setdefault(event, set()).update(_named_below(plan, node) - {event})
    for rule in plan.rules:
        needs.setdefault(rule.name, set()).add(rule.event)
    return needs


def _named_below(plan: Plan, node: int) -> set[str]:
    """The named events an expression is made of, not looking into them."""
    names: dict[int, set[str]] = {}
    for event, number in plan.events:
        names.setdefault(number, set()).add(event)
    found: set[str] = set()
    pending = [node, *plan.nodes[node].operands] if plan.nodes[node].source else list(plan.nodes[node].operands)
    while pending:
        number = pending.pop()
        below = plan.nodes[number]
        if number in names:
            found |= names[number]
        elif below.operator in ("leaf", "temporal", "pattern"):
            found.add(below.source or "")
        else:
            pending += below.operands
    return found


def _turned(needs: Mapping[str, set[str]]) -> Mapping[str, set[str]]:
    turned: dict[str, set[str]] = {name: set() for name in needs}
    for name, needed in needs.items():
        for each in needed:
            turned.setdefault(each, set()).add(name)
    return turned


def _closure(name: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    pending = [name]
    while pending:
        for each in edges.get(pending.pop(), ()):
            if each not in found:
                found.add(each)
                pending.append(each)
    return found
