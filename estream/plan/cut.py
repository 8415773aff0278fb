"""Fourth pass: a named event whose occurrences are in other partitions is relayed, and so begins a stage."""

from __future__ import annotations

from dataclasses import replace

from estream.plan.draft import Definition, Draft, Key, Part, Use


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
    leaves = [leaf for leaf in draft.last(use) if not draft.is_temporal(leaf)]
    wanted = {leaf: key_in(definition, use, leaf) for leaf in leaves}
    # The key of the last constituent decides: where it is the same inside and outside, so is the partition.
    if all(own_key(draft, inner, leaf) == key for leaf, key in wanted.items()):
        return use
    return replace(use, relay=tuple(sorted(wanted.items())))


def key_in(definition: Definition, use: Use, leaf: str) -> Key:
    """The key that a definition gives to a leaf where it uses an event: the event's own entry goes first."""
    return definition.keys.get(use.event, definition.keys.get(leaf, ()))


def own_key(draft: Draft, definition: Definition, leaf: str) -> Key:
    """The key by which a definition's occurrences with this last constituent are partitioned."""
    return definition.keys.get(leaf) or _through_names(draft, definition, definition.root, leaf) or ()


def _through_names(draft: Draft, definition: Definition, part: Part | Use, leaf: str) -> Key | None:
    """The entry of the named event through which the leaf comes."""
    if isinstance(part, Use):
        return definition.keys.get(part.event) if leaf in draft.constituents(part) else None
    found = (_through_names(draft, definition, operand, leaf) for operand in part.operands)
    return next((key for key in found if key is not None), None)
