"""Masks of composite events as one compiled function, which the kernel calls by its address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from estream.event.columns import Texts
from estream.event.graph import Graph


@dataclass(frozen=True, slots=True)
class Masks:
    """The compiled conjuncts of a graph, and the attributes they ask for."""

    address: int
    columns: tuple[tuple[int, bool], ...]
    keep: Any = None


def compile_masks(graph: Graph, texts: Texts) -> Masks:
    """Compile every conjunct of the graph."""
    return Masks(0, ())
