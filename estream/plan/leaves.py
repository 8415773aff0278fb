"""Which leaf events stand in an expression, and in which of them an occurrence can end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from estream.plan.draft import Draft, Key, Leaves, Part, Use
from estream.spec.event_expression import Operator
from estream.spec.types import spelling

CONSTITUENTS: Mapping[Operator, tuple[int, ...]] = {
    "or": (0, 1),
    "and": (0, 1),
    ";": (0, 1),
    "not": (0, 2),
    "A": (0, 1),
    "A*": (0, 1, 2),
    "P": (0,),
    "P*": (0, 1),
    "+": (0,),
    "absent": (0,),
    "times": (0,),
}
"""Which operands give constituents to an occurrence."""

LAST: Mapping[Operator, tuple[int, ...]] = {
    **CONSTITUENTS,
    ";": (1,),
    "not": (2,),
    "A": (1,),
    "A*": (2,),
    "P*": (1,),
}
"""Which operands give the last constituent."""

CERTAIN: Mapping[Operator, tuple[int, ...]] = {**CONSTITUENTS, "A*": (0, 2)}
"""Which operands give a constituent to every occurrence (`or`: one of them); A* needs no middle event."""


def leaves(part: Part | Use, known: Mapping[str, Leaves]) -> Leaves:
    """The leaves of an expression, from those of the events it names."""
    if isinstance(part, Use):
        return known[part.event]
    below = [leaves(operand, known) for operand in part.operands]

    def at(roles: Mapping[Operator, tuple[int, ...]]) -> list[Leaves]:
        return [below[i] for i in roles[part.operator] if i < len(below)]

    temporal = [each.only_temporal for each in at(CERTAIN)]
    return Leaves(
        once(name for each in below for name in each.every),
        once(name for each in at(CONSTITUENTS) for name in each.constituents),
        once(name for each in at(LAST) for name in each.last),
        any(temporal) if part.operator == "or" else all(temporal),
    )


def constituents(draft: Draft, part: Part | Use) -> tuple[str, ...]:
    """Leaf events that can be constituents of its occurrences."""
    return leaves(part, draft.leaves_of).constituents


def keyed(draft: Draft, part: Part | Use) -> tuple[str, ...]:
    """Leaf events whose attributes can be the key of an occurrence: the last constituent that is not temporal."""
    found = leaves(part, draft.leaves_of)
    able = found.constituents if any(map(draft.is_temporal, found.last)) else found.last
    return tuple(leaf for leaf in able if not draft.is_temporal(leaf))


def spelled(draft: Draft, leaf: str, key: Iterable[str]) -> Key:
    """The attributes of a key as the leaf declares them: Spark does not regard case."""
    columns = draft.checked.events[leaf].columns or {}
    return tuple(str(spelling(attribute, columns) or attribute) for attribute in key)


def once(names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once, in their order."""
    return tuple(dict.fromkeys(names))
