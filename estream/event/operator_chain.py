"""Stream operators that read each other's output: queries in their order, with windows shared where they can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from estream.event.operator import Operator, OperatorState, begin, compile_operator, step_each
from estream.plan.stream_operator import StreamOperator, Window


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators, each after those it reads."""

    operators: tuple[Operator, ...]


def compile_chain(queries: Sequence[StreamOperator], arrival: bool = False) -> Chain:
    """The operators of queries, each of which stands after those it reads."""
    together: dict[object, list[StreamOperator]] = {}
    for query in queries:
        together.setdefault(_window_key(query), []).append(query)
    return Chain(tuple(compile_operator(*group, arrival=arrival) for group in together.values()))


def _window_key(query: StreamOperator) -> object:
    """Equal for queries that can share a window: of the same rows, partitions, extent, groups and span."""
    if not isinstance(query.operation, Window):
        return query.name
    return query.source, query.partition, query.operation.extent, query.operation.group_by, query.span


def begin_chain(chain: Chain) -> tuple[OperatorState, ...]:
    """The states of operators that have seen nothing."""
    return tuple(begin(operator) for operator in chain.operators)


def step_chain(
    chain: Chain,
    states: Sequence[OperatorState],
    batches: Mapping[str, pa.Table],
    watermark: int,
    end_of_input: bool = False,
) -> dict[str, pa.Table]:
    """Take batches in, by the stream or query they are rows of, and give what every query of the chain gives.

    All batches have the same watermark. A query whose times lie behind lets those that read it wait so much longer.
    """
    rows = dict(batches)
    watermarks = dict.fromkeys(batches, watermark)
    given: dict[str, pa.Table] = {}
    for operator, state in zip(chain.operators, states, strict=True):
        source = operator.queries[0].source
        batch = rows.get(source, operator.source.empty_table())
        reached = watermarks.get(source, watermark)
        given |= step_each(operator, state, batch, reached, end_of_input)
        rows |= given
        watermarks |= {query.name: reached - query.delay for query in operator.queries}
    return given
