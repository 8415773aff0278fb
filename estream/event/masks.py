"""Masks of composite events: each conjunct a compiled function, which the kernel calls by its address.

The source is written to the cache directory under a name made from its content, and compiled once: a second start
finds the machine code there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from estream.event import scalar
from estream.event.columns import Texts
from estream.event.compiled import source_cache
from estream.event.generated import load_generated
from estream.event.graph import Graph
from estream.event.words import CONJUNCT_WORDS
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, walk
from estream.spec.types import FRACTIONS

Words = npt.NDArray[np.int64]
MASK_SOURCES = ("memory.py", "words.py", "mask_access.py")

HEADER = f'''"""A conjunct of a mask, made by EStream."""

from numba import cfunc, njit

from estream.event.mask_access import double, integer, is_null, last_row, row_at, rows_asked
from estream.event.memory import peek
{scalar.PREAMBLE}
'''
FOOTER = """

@cfunc("int64(int64, int64, int64)", cache=True)
def ask(m, frame, unused):
{body}
    return 1 if holds({given})[0] else 0
"""

FIRST_VALUE = """
        if {n} == 0:
            {g}, {g}_null = x, x_null
        {n} += 1"""
TAKE_IF = """
        if not x_null and ({{g}}_null or {}):
            {{g}}, {{g}}_null = x, False"""
FOLDS = {
    "count": "\n        {g} += 0 if x_null else 1",
    "first": FIRST_VALUE,
    "last": "\n        {g}, {g}_null = x, x_null",
    "min": TAKE_IF.format("x < {g} or ({g} != {g} and x == x)"),
    "max": TAKE_IF.format("x > {g} or (x != x and {g} == {g})"),
    "sum": "\n        if not x_null:\n            {g} += x\n            {g}_null = False",
    "avg": "\n        if not x_null:\n            {g} += x\n            {n} += 1\n            {g}_null = False",
}
"""What an aggregate does with the value `x` of one more row. NaN is greater than every number, as in Spark."""


@dataclass(frozen=True, slots=True)
class Mask:
    """A compiled conjunct. The frame is what it is asked with: event codes, places of columns, constant texts.

    So conjuncts that differ in names and texts only are the same code.
    """

    address: int
    frame: tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Masks:
    """The conjuncts of a graph; `columns` are the attributes they ask for, as `Rows` takes them."""

    conjuncts: tuple[Mask, ...]
    columns: tuple[tuple[int, bool], ...]

    def table(self, kinds: Words, texts: Texts) -> tuple[Words, Words]:
        """The conjuncts as the kernel reads them, and the frames they point to; `kinds` are kind and operand."""
        frames = [texts.code(one) if isinstance(one, str) else one for mask in self.conjuncts for one in mask.frame]
        flat = np.array(frames or [0], dtype=np.int64)
        table = np.zeros((len(self.conjuncts) + 1, CONJUNCT_WORDS), dtype=np.int64)
        place = int(flat.ctypes.data)
        for row, kind, mask in zip(table, kinds, self.conjuncts, strict=False):
            row[:] = (*kind, mask.address, place)
            place += flat.itemsize * len(mask.frame)
        return table, flat


def compile_masks(graph: Graph) -> Masks:
    """Compile every conjunct of the graph, or load what an earlier process compiled."""
    columns: dict[tuple[int, bool], int] = {}
    conjuncts = []
    for one in graph.conjuncts:
        writing = _Writing(graph, columns)
        module = load_generated("estream_mask", writing.conjunct(one.expression), source_cache("mask", MASK_SOURCES))
        conjuncts.append(Mask(module.ask.address, tuple(writing.frame)))
    return Masks(tuple(conjuncts), tuple(columns))


class _Writing:
    """The source of a conjunct, and what it asks for."""

    def __init__(self, graph: Graph, columns: dict[tuple[int, bool], int]) -> None:
        self.graph = graph
        self.columns = columns
        self.frame: list[int | str] = []
        self._places: dict[tuple[str, int | str], int] = {}

    def conjunct(self, expression: Expression) -> str:
        """The module of one conjunct."""
        arguments = {argument: f"a{place}" for place, argument in enumerate(scalar.arguments_of(expression))}
        functions = [scalar.to_source(expression, "holds", arguments)]
        lines: list[str] = []
        for argument, name in arguments.items():
            if isinstance(argument, Aggregate):
                if argument.operand is not None and not _is_event(argument.operand):
                    functions.append(self._operand(f"of_{name}", argument.operand))
                lines += self._aggregate(argument, name, f"of_{name}")
            else:
                lines += self._given(argument, name)
        given = ", ".join(n if isinstance(a, Literal) else f"{n}, {n}_null" for a, n in arguments.items())
        body = "\n".join(f"    {line}" for line in lines)
        inner = "\n\n".join(f"@njit(error_model='numpy')\n{function}" for function in functions)
        return HEADER + inner + FOOTER.format(body=body, given=given)

    def _framed(self, kind: str, value: int | str) -> str:
        """A value that is in the frame, as the source reads it; values of different kinds have places of their own."""
        place = self._places.setdefault((kind, value), len(self._places))
        if place == len(self.frame):
            self.frame.append(value)
        return f"peek(frame, {place})"

    def _event(self, name: str) -> str:
        return self._framed("event", self.graph.event_code(name))

    def _given(self, argument: Attribute | Literal, name: str) -> Iterator[str]:
        """Lines that fetch a constant text, or an attribute of the last row of its leaf."""
        if isinstance(argument, Literal):
            yield f"{name} = {self._framed('text', str(argument.value))}"
        else:
            yield f"{name}_row = last_row(m, {self._event(argument.event or '')})"
            yield from self._fetch(argument, name, f"{name}_row")

    def _fetch(self, attribute: Attribute, name: str, row: str) -> Iterator[str]:
        as_double = attribute.type.name in FRACTIONS
        column = self.graph.column_of(attribute.event or "", attribute.name)
        place = self._framed("column", self.columns.setdefault((column, as_double), len(self.columns)))
        yield f"{name}_null = is_null(m, {place}, {row})"
        yield f"{name} = {'double' if as_double else 'integer'}(m, {place}, {row})"

    def _operand(self, name: str, operand: Expression) -> str:
        arguments = {argument: f"b{place}" for place, argument in enumerate(scalar.arguments_of(operand))}
        return scalar.to_source(operand, name, arguments)

    def _aggregate(self, aggregate: Aggregate, name: str, function: str) -> Iterator[str]:
        """Lines that go through the rows of a leaf."""
        operand = aggregate.operand
        assert operand is not None
        whole = _is_event(operand)
        leaf = operand.name if isinstance(operand, Attribute) and whole else _leaf(operand)
        zero = "0.0" if aggregate.type.name in FRACTIONS else "0"
        yield f"{name}, {name}_null, {name}_count = {zero}, {aggregate.name != 'count'}, 0"
        yield "for position in range(rows_asked(m)):"
        yield f"    row = row_at(m, position, {self._event(leaf)})"
        yield "    if row >= 0:"
        if whole:
            yield "        x, x_null = 0, False"
        else:
            inner = {argument: f"b{place}" for place, argument in enumerate(scalar.arguments_of(operand))}
            for argument, given in inner.items():
                lines = self._fetch(argument, given, "row") if isinstance(argument, Attribute) else ()
                yield from (f"        {line}" for line in lines)
            passed = ", ".join(f"{given}, {given}_null" for given in inner.values())
            yield f"        x, x_null = {function}({passed})"
        fold = FOLDS[aggregate.name].format(g=name, n=f"{name}_count")
        yield from fold.strip("\n").split("\n")
        if aggregate.name == "avg":
            yield f"{name} = {name} / max({name}_count, 1)"


def _is_event(operand: Expression) -> bool:
    """Whether it is the E of `count(E)`."""
    return isinstance(operand, Attribute) and operand.event is None


def _leaf(operand: Expression) -> str:
    return next(part.event or "" for part in walk(operand) if isinstance(part, Attribute))
