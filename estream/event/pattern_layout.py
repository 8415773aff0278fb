"""What a pattern remembers: columns its predicates and aggregates ask for, and where values stand in flat arrays.

Matching is contiguous, so a partial match is told by its first row, and its rows are the last ones of its partition:
`last(x)` is the same for all partial matches of a partition and stands once in the partition's words, `count()` is a
difference of two row numbers. All else is kept up to date in the words of the partial match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal as OneOf
from typing import TypeAlias

from estream.event.pattern_kernel import FOUND_WORDS, PARTITION_WORDS, RECORD_WORDS
from estream.plan.model import Pattern
from estream.spec.automaton import Automaton, automaton_of
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation, walk
from estream.spec.pattern_expression import with_rows_lifted, without_delta
from estream.spec.regex import parse_pattern
from estream.spec.types import FRACTIONS, DataType
from estream.text import Text

ANY_ROW = "."
BITS = 62
"""States in one word: neither the sign nor a carry is in the way of shifts."""

Fold: TypeAlias = OneOf["first", "min", "max", "sum", "count"]
_FOLDS: dict[str, tuple[Fold, ...]] = {
    "first": ("first",),
    "min": ("min",),
    "max": ("max",),
    "sum": ("sum",),
    "count": ("count",),
    "avg": ("sum", "count"),
}
_WORDS = (
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "date",
    "timestamp",
    "interval",
    "string",
    "float",
    "double",
)


@dataclass(frozen=True, slots=True)
class Column:
    """A value of every row that the generated function sees: an attribute, or what was lifted out of an expression."""

    expression: Expression
    number: int

    @property
    def is_real(self) -> bool:
        """Whether it is a double; else it is an integer, a time, or the code of a text."""
        return self.expression.type.name in FRACTIONS


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A value of a partial match that every row brings up to date, at the word `place`; its null flag follows it."""

    fold: Fold
    column: Column
    place: int

    @property
    def is_real(self) -> bool:
        """Whether the word is a double."""
        return self.column.is_real and self.fold != "count"


class Layout:
    """The layout of one pattern; equal values stand once."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.automaton: Automaton = automaton_of(parse_pattern(Text(pattern.pattern)))
        self.columns: dict[Expression, Column] = {}
        self.accumulators: dict[tuple[Fold, Expression], Accumulator] = {}
        self.last: dict[Expression, int] = {}
        self.texts: dict[str, int] = {}
        self._lifted: dict[Attribute, Expression] = {}
        self.state_words = -(-len(self.automaton.predicates) // BITS)
        self.record_size = RECORD_WORDS + self.state_words
        self.partition_size = PARTITION_WORDS
        self.predicates = self._predicates()
        self.output = tuple((name, _of_whole_match(expression)) for name, expression in pattern.output)
        self._ask_of_matches()
        self.found_size = FOUND_WORDS + self.record_size - RECORD_WORDS - self.state_words

    @property
    def is_same_for_all(self) -> bool:
        """Whether no predicate tells partial matches in the same state apart, so that the oldest stands for all."""
        alone = all(part.name == "last" for part in self._aggregates())
        return alone and self.pattern.within is None and self.pattern.skip == "past_last"

    def column(self, expression: Expression) -> Column:
        """The column of an attribute or of a lifted expression."""
        meant = self._lifted.get(expression, expression) if isinstance(expression, Attribute) else expression
        return self.columns.setdefault(meant, Column(meant, len(self.columns)))

    def place_in_match(self, accumulator: Accumulator) -> int:
        """Where a value stands among the words of a match, which has all those of the partial match it was."""
        return FOUND_WORDS + accumulator.place - RECORD_WORDS - self.state_words

    def of_aggregate(self, aggregate: Aggregate) -> tuple[Accumulator, ...]:
        """What an aggregate of a partial match is made of; nothing for `count()` and `last`."""
        if aggregate.operand is None or aggregate.name == "last":
            return ()
        return tuple(self._accumulator(fold, aggregate.operand) for fold in _FOLDS[aggregate.name])

    def _accumulator(self, fold: Fold, operand: Expression) -> Accumulator:
        column = self.column(operand)
        known = self.accumulators.get((fold, column.expression))
        if known is None:
            known = Accumulator(fold, column, self.record_size)
            self.accumulators[fold, column.expression] = known
            self.record_size += 2
        return known

    def _predicates(self) -> dict[str, Expression]:
        used = {predicate.name for predicate in self.automaton.predicates} - {ANY_ROW}
        found = {
            name: with_rows_lifted(without_delta(expression), self._lift)
            for name, expression in self.pattern.define
            if name in used
        }
        for expression in found.values():
            for part in walk(expression):
                self._ask(part)
        return found

    def _ask(self, part: Expression) -> None:
        if isinstance(part, Attribute):
            self.column(part)
        elif isinstance(part, Literal) and isinstance(part.value, str):
            self.texts.setdefault(part.value, len(self.texts))
        elif isinstance(part, Aggregate) and part.operand is not None:
            self.of_aggregate(part)
            column = self.column(part.operand)
            if part.name == "last" and column.expression not in self.last:
                self.last[column.expression] = self.partition_size
                self.partition_size += 2

    def _lift(self, expression: Expression) -> Attribute:
        lifted = Attribute(None, f"lifted {len(self._lifted)}", expression.type, expression.span)
        self._lifted[lifted] = expression
        return lifted

    def _aggregates(self) -> Iterator[Aggregate]:
        for expression in self.predicates.values():
            yield from (part for part in walk(expression) if isinstance(part, Aggregate))

    def _ask_of_matches(self) -> None:
        """Let there be accumulators for what the output asks for."""
        for _, expression in self.output:
            for part in walk(expression):
                if isinstance(part, Aggregate) and not is_gathered(part):
                    self.of_aggregate(part)


def is_gathered(aggregate: Aggregate) -> bool:
    """Whether the rows of a match have to be there for it: lists, and first values that are no words."""
    if aggregate.name == "collect":
        return True
    return aggregate.operand is not None and aggregate.name == "first" and not is_word(aggregate.operand.type)


def is_word(kind: DataType) -> bool:
    """Whether a value of the type is one word from which the value can be had back."""
    return kind.name in _WORDS


def _of_whole_match(expression: Expression) -> Expression:
    """The output of a match as an expression over its last row: `last(x)` is the last row's x."""
    return _without_last(without_delta(expression))


def _without_last(expression: Expression) -> Expression:
    match expression:
        case Aggregate(name="last", operand=operand) if operand is not None:
            return operand
        case Operation():
            return replace(expression, operands=tuple(map(_without_last, expression.operands)))
    return expression
