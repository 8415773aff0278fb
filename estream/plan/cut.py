"""Fourth pass: a named event whose occurrences are in other partitions is relayed, and so begins a stage."""

from __future__ import annotations

from dataclasses import replace

from estream.plan.draft import Definition, Draft, Key, Part, Use, uses
from estream.plan.leaves import constituents, keyed, spelled


def cut(draft: Draft) -> Draft:
    """Definitions whose uses of named composite events say whether they are relayed, and by which keys."""
    definitions = {
        variant: replace(definition, root=_cut_part(draft, definition, definition.root))
        for variant, definition in draft.definitions.items()
    }
    return replace(draft, definitions=definitions)


def _cut_part(draft: Draft, definition: Definition, part: Part) -> Part:
    operands = tuple(
        _cut_use(draft, definition, operand) if isinstance(operand, Use) else _cut_part(draft, definition, operand)
        for operand in part.operands
    )
    return replace(part, operands=operands)


def _cut_use(draft: Draft, definition: Definition, use: Use) -> Use:
    inner = draft.definitions.get((use.event, None))
    if inner is None:
        return use
    wanted = {leaf: key_in(draft, definition, use, leaf) for leaf in keyed(draft, use)}
    # The key of the last constituent decides: where it is the same inside and outside, so is the partition.
    if all(own_keys(draft, inner, leaf) == {key} for leaf, key in wanted.items()):
        return use
    return replace(use, relay=tuple(sorted(wanted.items())))


def key_in(draft: Draft, definition: Definition, use: Use, leaf: str) -> Key:
    """The key that a definition gives to a leaf where it uses an event: the event's own entry goes first."""
    return spelled(draft, leaf, definition.keys.get(use.event, definition.keys.get(leaf, ())))


def own_keys(draft: Draft, definition: Definition, leaf: str) -> set[Key]:
    """The keys that a definition gives to a leaf; several where it stands in several places with different ones."""
    return {key_in(draft, definition, use, leaf) for use in uses(definition.root) if leaf in constituents(draft, use)}
