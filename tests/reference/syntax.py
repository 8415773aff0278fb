"""Reads conditions and values as the vectors write them."""

from __future__ import annotations

import re

from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation
from estream.spec.types import BIGINT, DOUBLE

AGGREGATES = ("first", "last", "min", "max", "sum", "avg", "count", "collect", "delta")
COMPARISONS = ("=", "<>", "<=", ">=", "<", ">")
TOKENS = re.compile(r"\s*(\d+(?:\.\d+)?|\w+|<>|<=|>=|[-+*/=<>().,])")


class Tokens:
    """The words of a text, taken one after the other."""

    def __init__(self, text: str) -> None:
        self.words: list[str] = []
        position, text = 0, text.rstrip()
        while position < len(text):
            match = TOKENS.match(text, position)
            if match is None:
                raise ValueError(f"cannot read {text[position:]!r}")
            self.words.append(match[1])
            position = match.end()

    def next_is(self, *words: str) -> bool:
        """Whether one of these words, in any case, comes next."""
        return bool(self.words) and self.words[0].lower() in words

    def take(self) -> str:
        """The next word."""
        return self.words.pop(0)

    def taken(self, *words: str) -> bool:
        """Whether one of these words came next; it is taken then."""
        if found := self.next_is(*words):
            self.take()
        return found

    def expect(self, word: str) -> None:
        """Takes this word and no other."""
        if not self.taken(word):
            raise ValueError(f"expected {word!r} before {' '.join(self.words)!r}")


def parse_mask(text: str) -> Expression:
    """The tree of a condition or value."""
    tokens = Tokens(text)
    tree = _disjunction(tokens)
    if tokens.words:
        raise ValueError(f"unexpected {' '.join(tokens.words)!r} in {text!r}")
    return tree


def _disjunction(tokens: Tokens) -> Expression:
    tree = _all_of(tokens)
    while tokens.taken("or"):
        tree = Operation("or", (tree, _all_of(tokens)))
    return tree


def _all_of(tokens: Tokens) -> Expression:
    tree = _negation(tokens)
    while tokens.taken("and"):
        tree = Operation("and", (tree, _negation(tokens)))
    return tree


def _negation(tokens: Tokens) -> Expression:
    if tokens.taken("not"):
        return Operation("not", (_negation(tokens),))
    return _comparison(tokens)


def _comparison(tokens: Tokens) -> Expression:
    tree = _sum(tokens)
    if tokens.next_is(*COMPARISONS):
        return Operation(tokens.take(), (tree, _sum(tokens)))
    if tokens.taken("is"):
        negated = tokens.taken("not")
        tokens.expect("null")
        tree = Operation("is_null", (tree,))
        return Operation("not", (tree,)) if negated else tree
    return tree


def _sum(tokens: Tokens) -> Expression:
    tree = _product(tokens)
    while tokens.next_is("+", "-"):
        tree = Operation(tokens.take(), (tree, _product(tokens)))
    return tree


def _product(tokens: Tokens) -> Expression:
    tree = _value(tokens)
    while tokens.next_is("*", "/"):
        tree = Operation(tokens.take(), (tree, _value(tokens)))
    return tree


def _value(tokens: Tokens) -> Expression:
    word = tokens.take()
    if word == "-":
        return Operation("neg", (_value(tokens),))
    if word == "(":
        tree = _disjunction(tokens)
        tokens.expect(")")
        return tree
    if word[0].isdigit():
        return Literal(float(word), DOUBLE) if "." in word else Literal(int(word), BIGINT)
    if word.lower() in AGGREGATES and tokens.taken("("):
        operand = None if tokens.next_is(")") else _disjunction(tokens)
        tokens.expect(")")
        return Aggregate(word.lower(), operand)
    if tokens.taken("."):
        return Attribute(word, tokens.take())
    return Attribute(None, word)
