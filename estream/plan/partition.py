"""The key of every leaf of an expression, from `partition_by`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from estream.errors import Place, Problem
from estream.plan.draft import Definition, Draft, Key, Use, uses
from estream.plan.leaves import constituents, keyed, once, spelled
from estream.spec.types import DataType, spelling
from estream.suggest import did_you_mean, listed, suggestion
from estream.text import Text


def partition(draft: Draft, definition: Definition) -> tuple[Mapping[str, Key], list[Problem]]:
    """Leaf, or named event with an entry of its own, to key; and what is wrong with `partition_by`."""
    given = definition.spec.partition_by
    if isinstance(given, Mapping):
        return _from_map(draft, definition, given)
    leaves = once(leaf for use in uses(definition.root) for leaf in constituents(draft, use))
    keys = {leaf: spelled(draft, leaf, given) for leaf in leaves if not draft.is_temporal(leaf)}
    # An attribute is told once, with the first event that lacks it.
    first: dict[Place, Problem] = {}
    for problem in (problem for leaf in keys for problem in _missing(draft, definition, leaf, given)):
        first.setdefault(problem.place, problem)
    problems = list(first.values())
    return keys, problems or list(_types_differ(draft, definition, keys, given))


def _from_map(
    draft: Draft, definition: Definition, given: Mapping[Text, tuple[Text, ...]]
) -> tuple[Mapping[str, Key], list[Problem]]:
    named = once(use.event for use in uses(definition.root))
    leaves = draft.leaves_of[definition.name].every
    problems: list[Problem] = []
    for name, attributes in given.items():
        if name not in named and name not in leaves:
            right = suggestion(name, once((*named, *leaves)))
            message = f"event '{definition.name}': partition_by names '{name}', which is not in its expression"
            problems.append(name.problem(message, hint=right))
        for leaf in keyed(draft, _use_of(definition, name)) if name in named else (name,) if name in leaves else ():
            problems += _missing(draft, definition, leaf, attributes)
    if problems:
        return {}, problems
    keys = {str(name): spelled(draft, name, attributes) for name, attributes in given.items()}
    without = _without_key(draft, definition, keys)
    if without:
        message = f"event '{definition.name}': partition_by has no attributes for {', '.join(without)}"
        return keys, [next(iter(given), definition.text).problem(message, hint="give every event its own")]
    return keys, list(_types_differ(draft, definition, keys, tuple(given)))


def _without_key(draft: Draft, definition: Definition, keys: Mapping[str, Key]) -> tuple[str, ...]:
    return once(
        leaf for use in uses(definition.root) if use.event not in keys for leaf in keyed(draft, use) if leaf not in keys
    )


def _use_of(definition: Definition, name: str) -> Use:
    return next(use for use in uses(definition.root) if use.event == name)


def _missing(draft: Draft, definition: Definition, leaf: str, attributes: tuple[Text, ...]) -> Iterator[Problem]:
    columns = draft.checked.events[leaf].columns or {}
    for attribute in attributes:
        if spelling(attribute, columns) is None:
            message = (
                f"event '{definition.name}': partition_by uses '{attribute}'; event '{leaf}' has {listed(columns)}"
            )
            hint = did_you_mean(attribute, columns) or "a map gives each event its own attributes"
            yield attribute.problem(message, hint=hint)


def _types_differ(
    draft: Draft, definition: Definition, keys: Mapping[str, Key], places: tuple[Text, ...]
) -> Iterator[Problem]:
    """Keys are compared across leaves, so that they need equally many attributes of like types."""
    typed = list(_typed(draft, definition, keys))
    if not typed:
        return
    (first, key, types), *others = typed
    for leaf, other, other_types in others:
        if len(key) != len(other):
            message = f"event '{definition.name}': partition_by gives {_count(first, key)} and {_count(leaf, other)}"
            yield _place(places, leaf, 0, definition).problem(message, hint="give every event equally many")
            continue
        for i, (left, right) in enumerate(zip(types, other_types, strict=True)):
            if not _comparable(left, right):
                message = (
                    f"event '{definition.name}': partition_by compares {first}.{key[i]} ({left}) "
                    f"with {leaf}.{other[i]} ({right})"
                )
                yield _place(places, leaf, i, definition).problem(message, hint="they never agree; use like types")


def _typed(
    draft: Draft, definition: Definition, keys: Mapping[str, Key]
) -> Iterator[tuple[str, Key, tuple[DataType, ...]]]:
    for name, key in keys.items():
        known = draft.checked.events[name]
        leaves = keyed(draft, _use_of(definition, name)) if known.when is not None else (name,)
        for leaf in leaves:
            columns, own = draft.checked.events[leaf].columns or {}, spelled(draft, leaf, key)
            if all(attribute in columns for attribute in own):
                yield leaf, own, tuple(columns[attribute] for attribute in own)


def _comparable(left: DataType, right: DataType) -> bool:
    if not (left.is_known and right.is_known):
        return True
    # Keys are compared exactly, not as numbers: 1 is not 1.0, and a decimal is its digits.
    return left == right or (left.is_integer and right.is_integer) or {left.name, right.name} == {"float", "double"}


def _place(places: tuple[Text, ...], leaf: str, index: int, definition: Definition) -> Text:
    named = next((place for place in places if place == leaf), None)
    return named or (places[index] if index < len(places) else definition.text)


def _count(leaf: str, key: Key) -> str:
    return f"{leaf} {len(key)} attribute{'' if len(key) == 1 else 's'}"
