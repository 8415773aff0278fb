"""The automaton of a pattern, for people: each state is named by the predicate that its row satisfies."""

from __future__ import annotations

from collections.abc import Iterator

from estream.plan.model import Node, Pattern
from estream.spec.automaton import Automaton, automaton_of, members
from estream.spec.regex import parse_pattern, to_text
from estream.text import Text


def transitions(pattern: Pattern) -> Iterator[str]:
    """The automaton in lines: `start: 1 .`, then for each state those that may follow."""
    automaton = _automaton(pattern)
    names = [f"{number} {to_text(predicate)}" for number, predicate in enumerate(automaton.predicates, 1)]
    yield f"start: {', '.join(names[state] for state in members(automaton.first))}"
    for state, following in enumerate(automaton.follow):
        after = ", ".join(names[each] for each in members(following))
        yield f"{names[state]}: {after or 'a match'}"


def states(node: Node) -> Iterator[tuple[str, str]]:
    """Id and label of each state of a pattern node's automaton."""
    if node.pattern is not None:
        for number, predicate in enumerate(_automaton(node.pattern).predicates):
            yield _id(node, number), to_text(predicate)


def arrows(node: Node) -> Iterator[tuple[str, str]]:
    """From the rows through the states to the matches."""
    if node.pattern is None:
        return
    automaton = _automaton(node.pattern)
    yield from ((f"node_{node.operands[0]}", _id(node, state)) for state in members(automaton.first))
    yield from ((_id(node, state), _id(node, after)) for state, after in automaton.edges)
    yield from ((_id(node, state), f"node_{node.number}") for state in members(automaton.final))


def _automaton(pattern: Pattern) -> Automaton:
    return automaton_of(parse_pattern(Text(pattern.pattern)))


def _id(node: Node, state: int) -> str:
    return f"node_{node.number}_state_{state + 1}"
