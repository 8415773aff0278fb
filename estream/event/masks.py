"""Masks of composite events as one compiled function, which the kernel calls by its address.

The source is written to the cache directory under a name made from its content, and compiled once: a second start
finds the machine code there.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estream.event import scalar
from estream.event.compiled import kept_on_disk, kernel_cache
from estream.event.graph import Graph
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, walk
from estream.spec.types import FRACTIONS

HEADER = f'''"""Masks of a graph, made by EStream."""

from numba import cfunc, njit

from estream.event.mask_access import double, integer, is_null, last_row, row_at, rows_asked, text_code
{scalar.PREAMBLE}
'''
FOOTER = """

@cfunc("int64(int64, int64, int64)", cache=True)
def ask(conjunct, m, unused):
{branches}    return 0
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
class Masks:
    """The compiled conjuncts of a graph; `columns` are the attributes they ask for, as `Rows` takes them."""

    address: int
    columns: tuple[tuple[int, bool], ...]
    texts: tuple[str, ...]
    """Constant texts, which the masks know by their place in this list."""
    function: Any = None


def compile_masks(graph: Graph) -> Masks:
    """Compile every conjunct of the graph, or load what an earlier process compiled."""
    writing = _Writing(graph)
    if not graph.conjuncts:
        return Masks(0, (), ())
    bodies = [writing.conjunct(number, one.expression) for number, one in enumerate(graph.conjuncts)]
    branches = "".join(
        f"    if conjunct == {number}:\n        return conjunct_{number}(m)\n" for number in range(len(bodies))
    )
    function = _load(HEADER + "\n\n".join(bodies) + FOOTER.format(branches=branches))
    return Masks(function.address, tuple(writing.columns), tuple(writing.texts), function)


def _load(source: str) -> Any:
    """The compiled `ask` of a source."""
    name = f"estream_masks_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
    path = kernel_cache() / f"{name}.py"
    if not path.exists():
        _write(path, source)
    with kept_on_disk():
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # numba writes the module's name into its cache and looks for it when it reads it again.
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module.ask


def _write(path: Path, source: str) -> None:
    """Write a file whole or not at all: several processes may start at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(source, encoding="utf-8")
    part.replace(path)


class _Writing:
    """The source of conjuncts, and what they ask for."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.columns: dict[tuple[int, bool], int] = {}
        self.texts: dict[str, int] = {}

    def conjunct(self, number: int, expression: Expression) -> str:
        """The functions of one conjunct."""
        arguments = {argument: f"a{place}" for place, argument in enumerate(scalar.arguments_of(expression))}
        functions = [scalar.to_source(expression, f"holds_{number}", arguments)]
        lines: list[str] = []
        for argument, name in arguments.items():
            if isinstance(argument, Aggregate):
                if argument.operand is not None and not _is_event(argument.operand):
                    functions.append(self._operand(f"of_{number}_{name}", argument.operand))
                lines += self._aggregate(argument, name, f"of_{number}_{name}")
            else:
                lines += self._given(argument, name)
        given = ", ".join(n if isinstance(a, Literal) else f"{n}, {n}_null" for a, n in arguments.items())
        body = "\n".join(f"    {line}" for line in lines)
        functions.append(f"def conjunct_{number}(m):\n{body}\n    return 1 if holds_{number}({given})[0] else 0\n")
        return "\n\n".join(f"@njit(error_model='numpy')\n{function}" for function in functions)

    def _given(self, argument: Attribute | Literal, name: str) -> Iterator[str]:
        """Lines that fetch a constant text, or an attribute of the last row of its leaf."""
        if isinstance(argument, Literal):
            place = self.texts.setdefault(str(argument.value), len(self.texts))
            yield f"{name} = text_code(m, {place})"
        else:
            yield f"{name}_row = last_row(m, {self.graph.event_code(argument.event or '')})"
            yield from self._fetch(argument, name, f"{name}_row")

    def _fetch(self, attribute: Attribute, name: str, row: str) -> Iterator[str]:
        as_double = attribute.type.name in FRACTIONS
        column = self.graph.column_of(attribute.event or "", attribute.name)
        place = self.columns.setdefault((column, as_double), len(self.columns))
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
        yield f"    row = row_at(m, position, {self.graph.event_code(leaf)})"
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
