"""Second pass: context, semantics, W and partition reach every part of an expression, and must fit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from estream.duration import format_duration
from estream.errors import Problem
from estream.plan.draft import TIMED, Definition, Draft, Part, Use, parts, uses
from estream.plan.leaves import leaves
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
    given = definition.spec.partition_by
    is_parted = any(given.values()) if isinstance(given, Mapping) else bool(given)
    if is_parted and leaves(definition.root, draft.leaves_of).only_temporal:
        message = "partition_by needs an event that is not temporal in every detection"
        yield definition.problem(message, hint="a temporal event belongs to every partition")
    elif is_parted:
        for use in uses(definition.root):
            if _lacks_key(draft, use):
                message = f"partition_by finds no key in '{use.event}', which can be detected of temporal events alone"
                yield definition.problem(message, use.span, "write its expression in place of its name")


def _lacks_key(draft: Draft, use: Use) -> bool:
    """Whether a named event sees rows, and so is not in every partition, and yet has occurrences without a row."""
    inside = draft.leaves_of[use.event]
    return inside.only_temporal and not all(map(draft.is_temporal, inside.every))
