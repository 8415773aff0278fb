"""Third pass: every conjunct of a mask goes to the node where it is asked (docs/semantics.md, section 2, Mask)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from estream.errors import Problem
from estream.plan.draft import INITIATED, Definition, Draft, Part
from estream.plan.leaves import constituents, leaves, once
from estream.plan.model import Conjunct
from estream.spec.expression import Aggregate, Attribute, Expression, Operation, walk
from estream.spec.expression_parser import parse_expression
from estream.spec.expression_text import to_text


def place(draft: Draft) -> Draft:
    """Definitions whose parts carry the conjuncts of their mask."""
    definitions = dict(draft.definitions)
    problems: list[Problem] = []
    for variant, definition in draft.definitions.items():
        root = definition.root
        for expression, written in _with_text(definition):
            try:
                root = _put(draft, root, expression, written)
            except _NeverThere as never:
                problems.append(_never_there(definition, expression, never))
        definitions[variant] = replace(definition, root=root)
    return replace(draft, definitions=definitions, problems=(*draft.problems, *problems))


def _with_text(definition: Definition) -> Iterator[tuple[Expression, str]]:
    """Every conjunct, and its text as it was before the types put casts into it."""
    mask = definition.spec.mask
    if mask is not None and definition.event.mask is not None:
        written = conjuncts(parse_expression(mask))
        for expression, bare in zip(conjuncts(definition.event.mask), written, strict=True):
            yield expression, mask.hide(to_text(bare))


def conjuncts(mask: Expression | None) -> Iterator[Expression]:
    """The mask split at its top-level ANDs."""
    if isinstance(mask, Operation) and mask.name == "and":
        for operand in mask.operands:
            yield from conjuncts(operand)
    elif mask is not None:
        yield mask


def leaves_named(expression: Expression) -> tuple[str, ...]:
    """The leaf events an expression over constituents names; `count(E)` names E."""
    attributes = (each for each in walk(expression) if isinstance(each, Attribute))
    return once(each.name if each.event is None else each.event for each in attributes)


class _NeverThere(Exception):
    """A leaf is named where it can be no constituent."""

    def __init__(self, leaf: str, part: Part) -> None:
        super().__init__(leaf)
        self.leaf = leaf
        self.part = part


def _put(draft: Draft, part: Part, expression: Expression, text: str) -> Part:
    """The part with the conjunct at its lowest node: go down while one operand has every place of every leaf."""
    named = leaves_named(expression)
    having = tuple(i for i, operand in enumerate(part.operands) if {*leaves(operand, draft.leaves_of).every} & {*named})
    if len(having) == 1 and isinstance(only := part.operands[having[0]], Part):
        lower = _put(draft, only, expression, text)
        operands = (*part.operands[: having[0]], lower, *part.operands[having[0] + 1 :])
        return replace(part, operands=operands)
    kind = _kind(part, expression, having)
    if kind == 3:
        _require_constituents(draft, part, named)
    conjunct = Conjunct(kind, () if kind == 3 else having, expression, text)
    return replace(part, conjuncts=(*part.conjuncts, conjunct))


def _require_constituents(draft: Draft, part: Part, named: tuple[str, ...]) -> None:
    able = constituents(draft, part)
    for leaf in named:
        if leaf not in able:
            raise _NeverThere(leaf, part)


def _kind(part: Part, expression: Expression, operands: tuple[int, ...]) -> Literal[1, 2, 3]:
    if any(isinstance(each, Aggregate) for each in walk(expression)) or not operands:
        return 3
    if len(operands) == 1:
        return 1
    is_pair = len(operands) == 2 and (part.operator == "and" or (part.operator in INITIATED and operands[0] == 0))
    return 2 if is_pair else 3


def _never_there(definition: Definition, expression: Expression, never: _NeverThere) -> Problem:
    mask = definition.spec.mask or definition.text
    start, end = expression.span
    message = (
        f"event '{definition.name}': mask asks '{to_text(expression)}' of '{never.part.operator}', "
        f"where '{never.leaf}' is never a constituent"
    )
    return mask.problem(message, start, end - start, _way_out(never.part))


def _way_out(part: Part) -> str | None:
    if part.operator in ("not", "absent"):
        return "what is negated can be compared with the initiator only, without aggregates"
    if part.operator in ("A", "P"):
        return "what ends the window can be compared with the initiator only, without aggregates"
    return None
