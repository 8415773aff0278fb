"""Queries that read each other: the output of one operator is the input of another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from estream.event.operator_chain import begin_chain, compile_chain, step_chain
from tests.reference import operators_stream as reference
from tests.reference.operators_runs import in_order, planned, rows_of, sample, table_of
from tests.reference.operators_stream import Row


def run_chain(queries: dict[str, Any], rows: list[Row], size: int) -> dict[str, list[Row]]:
    """What every query gives for rows that come in order, `size` at a time."""
    chain = compile_chain(tuple(planned(queries).values()))
    states = begin_chain(chain)
    source = chain.operators[0]
    found: dict[str, list[Row]] = {name: [] for name in queries}
    for at in range(0, len(rows), size):
        batch = {"S": table_of(source, rows[at : at + size])}
        watermark = rows[min(at + size, len(rows) - 1)]["ts"]
        for name, table in step_chain(chain, states, batch, watermark, at + size >= len(rows)).items():
            found[name] += rows_of(table)
    assert all(state.buffer.counts["late"] == 0 for state in states)
    return found


def encoded(table: pa.Table) -> pa.Table:
    """The batch with its text encoded by dictionaries."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(place, field.name, table.column(place).combine_chunks().dictionary_encode())
    return table


def as_bag(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


def test_a_window_over_a_modifier_and_a_filter_over_the_window() -> None:
    queries = {
        "Step": {"from": "S", "modify": {"function": "adiff", "attributes": ["n"], "partition_by": "k"}},
        "Moves": {
            "from": "Step",
            "window": {"time": "5 us", "slide": "batch"},
            "partition_by": "k",
            "select": {"ts": "window.end", "k": "k", "moves": "sum(abs(n))"},
        },
        "Wild": {"from": "Moves", "where": "moves > 3"},
    }
    first, second = (compile_chain([one]).operators[0] for one in list(planned(queries).values())[:2])
    rows = in_order(first, sample(300, seed=6))
    changes = reference.modify(rows, "adiff", ["n"], ["k"])
    wanted = [
        {"ts": end, "k": inside[0]["k"], "moves": total}
        for inside, _, end in reference.windows(in_order(second, changes), 5, "time", True, ["k"], [])
        if (total := sum(abs(row["n"]) for row in inside if row["n"] is not None)) > 3
    ]
    for size in (300, 30, 7):
        assert as_bag(run_chain(queries, rows, size)["Wild"]) == as_bag(wanted)


def test_what_reads_a_window_whose_times_lie_behind_waits_for_them() -> None:
    batches = {"from": "S", "window": {"time": "10 us", "slide": "batch"}, "group_by": "k"}
    queries = {
        "First": {**batches, "select": {"ts": "first(ts)", "n": "count()"}},
        "Gap": {"from": "First", "modify": {"function": "adiff", "attributes": ["n"]}},
    }
    rows = in_order(compile_chain(list(planned(queries).values())).operators[0], sample(200, seed=9))
    whole = run_chain(queries, rows, 200)
    assert len(whole["Gap"]) == len(whole["First"]) - 1 > 40
    assert as_bag(run_chain(queries, rows, 9)["Gap"]) == as_bag(whole["Gap"])


def test_queries_with_the_same_window_run_as_one_operator() -> None:
    window = {"from": "S", "window": {"rows": 5}, "partition_by": "k"}
    queries = {
        "Mean": {**window, "select": {"ts": "ts", "mean": "avg(n)"}},
        "Other": {**window, "window": {"rows": 6}, "select": {"ts": "ts", "mean": "avg(n)"}},
        "Top": {**window, "select": {"ts": "ts", "top": "max(n)"}},
    }
    chain = compile_chain(tuple(planned(queries).values()))
    assert [[query.name for query in operator.queries] for operator in chain.operators] == [["Mean", "Top"], ["Other"]]


def test_batches_may_have_their_text_encoded_by_dictionaries() -> None:
    window = {"from": "S", "partition_by": "k"}
    queries = {
        "Each": {**window, "window": {"rows": 3}, "select": {"ts": "ts", "k": "k", "s": "s", "low": "min(s)"}},
        "Batch": {
            **window,
            "window": {"time": "9 us", "slide": "batch"},
            "group_by": "s",
            "select": {"ts": "window.end", "k": "k", "s": "s", "all": "collect(s)"},
        },
        "Step": {"from": "S", "modify": {"function": "adiff", "attributes": ["n"], "partition_by": "k"}},
        "First": {"from": "S", "first_unique": ["k", "s"], "window": {"time": "20 us"}, "where": "s <> 'a'"},
    }
    chain = compile_chain(tuple(planned(queries).values()))
    rows = in_order(chain.operators[0], sample(120, seed=4))
    plain, mixed = begin_chain(chain), begin_chain(chain)
    for at in range(0, 120, 20):
        batch = table_of(chain.operators[0], rows[at : at + 20])
        watermark = rows[at + 15]["ts"]
        wanted = step_chain(chain, plain, {"S": batch}, watermark)
        found = step_chain(chain, mixed, {"S": encoded(batch) if at % 60 else batch}, watermark)
        assert {name: rows_of(table) for name, table in found.items()} == {
            name: rows_of(table) for name, table in wanted.items()
        }
