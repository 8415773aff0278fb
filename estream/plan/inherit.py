"""Second pass: context, semantics, W and partition reach every part of an expression, and must fit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from estream.duration import format_duration
from estream.errors import Problem
from estream.plan.draft import CONSTITUENTS, TIMED, Definition, Draft, Part, Use, parts
from estream.plan.partition import partition


def inherit(draft: Draft) -> Draft:
    """Definitions with their settings. A named event inherits nothing, so that each definition stands by itself."""
    definitions = dict(draft.definitions)
    problems: list[Problem] = []
    for variant, bare in draft.definitions.items():
        within = bare.spec.within.microseconds if bare.spec.within else None
        keys, wrong = partition(draft, bare)
        settled = replace(bare, semantics=bare.spec.semantics or "interval", within=within, keys=keys)
        definitions[variant] = settled
        problems += wrong
        problems += _same_sides(settled)
        problems += _too_long(settled)
        problems += _only_temporal(draft, settled)
    return replace(draft, definitions=definitions, problems=(*draft.problems, *problems))


def _same_sides(definition: Definition) -> Iterator[Problem]:
    for part in parts(definition.root):
        if part.operator == "and" and _bare(part.operands[0]) == _bare(part.operands[1]):
            message = "both sides of 'and' are the same expression"
            yield definition.problem(message, part.span, "for two occurrences of E write times(2, E)")


def _bare(part: Part | Use) -> Part | Use:
    """The expression without its places."""
    if isinstance(part, Use):
        return Use(part.event)
    return replace(part, operands=tuple(map(_bare, part.operands)), span=(0, 0))


def _too_long(definition: Definition) -> Iterator[Problem]:
    within = definition.within
    for part in parts(definition.root):
        if within is not None and part.operator in TIMED and part.duration is not None and part.duration > within:
            waits, most = format_duration(part.duration), format_duration(within)
            message = f"'{part.operator}' waits {waits}, longer than within ({most}): it could never be detected"
            yield definition.problem(message, part.span)


def _only_temporal(draft: Draft, definition: Definition) -> Iterator[Problem]:
    if is_partitioned(definition.keys) and may_be_only_temporal(draft, definition.root):
        message = "partition_by needs an event that is not temporal in every detection"
        yield definition.problem(message, hint="a temporal event belongs to every partition")


def is_partitioned(keys: Mapping[str, tuple[str, ...]]) -> bool:
    """True if some leaf has a key."""
    return any(keys.values())


def may_be_only_temporal(draft: Draft, part: Part | Use) -> bool:
    """True if there can be an occurrence whose constituents are all temporal."""
    if isinstance(part, Use):
        definition = draft.definitions.get((part.event, None))
        return draft.is_temporal(part.event) if definition is None else may_be_only_temporal(draft, definition.root)
    # A* is detected even with no middle event.
    certain = (0, 2) if part.operator == "A*" else CONSTITUENTS[part.operator]
    temporal = [may_be_only_temporal(draft, part.operands[i]) for i in certain if i < len(part.operands)]
    return any(temporal) if part.operator == "or" else all(temporal)
