"""Fourth pass: a named event whose occurrences are in other partitions is relayed, and so begins a stage."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeAlias

from estream.plan.draft import Definition, Draft, Key, Part, Use, Variant, uses
from estream.plan.leaves import constituents, keyed, spelled

Keys: TypeAlias = dict[str, Key | tuple[tuple[str, Key], ...]]
"""What comes into a partitioning from outside: leaves with their key, relayed events with those of their leaves."""


def cut(draft: Draft) -> Draft:
    """Definitions whose uses of named composite events say whether they are relayed, and by which keys."""
    cutter = _Cutter(draft)
    return replace(draft, definitions={variant: cutter.cut(variant) for variant in draft.definitions})


@dataclass
class _Cutter:
    """What comes into the partitioning of each definition that is cut; those that an event is made of go first."""

    draft: Draft
    keys: dict[Variant, Keys] = field(default_factory=dict)

    def cut(self, variant: Variant) -> Definition:
        """The definition with its relays."""
        definition = self.draft.definitions[variant]
        direct = (use.event for use in uses(definition.root) if (use.event, None) not in self.draft.definitions)
        known: Keys = {leaf: definition.keys.get(leaf, ()) for leaf in direct if not self.draft.is_temporal(leaf)}
        self.keys[variant] = known
        return replace(definition, root=self._part(definition, definition.root, known))

    def _part(self, definition: Definition, part: Part, known: Keys) -> Part:
        operands = tuple(
            self._use(definition, operand, known)
            if isinstance(operand, Use)
            else self._part(definition, operand, known)
            for operand in part.operands
        )
        return replace(part, operands=operands)

    def _use(self, definition: Definition, use: Use, known: Keys) -> Use:
        if (use.event, None) not in self.draft.definitions:
            return use
        inner = self.draft.definitions[use.event, None]
        wanted = {leaf: key_in(self.draft, definition, use, leaf) for leaf in keyed(self.draft, use)}
        below = self.keys[use.event, None]
        # The key of the last constituent decides: where it is the same inside and outside, so is the partition. But a
        # row comes into a partitioning once: an event with another key inside than outside needs two partitionings.
        is_alike = all(own_keys(self.draft, inner, leaf) == {key} for leaf, key in wanted.items())
        if is_alike and all(known.get(name, key) == key for name, key in below.items()):
            known.update(below)
            return use
        relay = tuple(sorted(wanted.items()))
        known[use.event] = relay
        return replace(use, relay=relay)


def key_in(draft: Draft, definition: Definition, use: Use, leaf: str) -> Key:
    """The key that a definition gives to a leaf where it uses an event: the event's own entry goes first."""
    return spelled(draft, leaf, definition.keys.get(use.event, definition.keys.get(leaf, ())))


def own_keys(draft: Draft, definition: Definition, leaf: str) -> set[Key]:
    """The keys that a definition gives to a leaf; several where it stands in several places with different ones."""
    return {key_in(draft, definition, use, leaf) for use in uses(definition.root) if leaf in constituents(draft, use)}
