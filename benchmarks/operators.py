"""How fast windows and modifiers are in process, on one core: `python -m benchmarks.operators [--repeat N]`.

Answers are checked: their number, and the sum of the column that was computed. Beside the rate stand those of other
systems for the same question (on 2 cores, in memory, no durability), and of numpy over all rows, sorted at once.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.ticks import ticks
from estream.event.operator_chain import Chain, begin_chain, compile_chain, step_chain
from estream.plan.build import build
from estream.spec.check import check
from estream.spec.reader import Read, parse_ceq

SECOND = 1_000_000
SCHEMA = {"ts": "timestamp", "symbol": "string", "price": "double", "volume": "bigint"}
MEAN = {
    "window": {"time": "1 s"},
    "partition_by": "symbol",
    "select": {"ts": "ts", "symbol": "symbol", "price": "avg(price)"},
}


@dataclass(frozen=True)
class Workload:
    """A question, its answer, and what others need for it; rates are in millions of rows a second."""

    name: str
    queries: dict[str, dict[str, object]]
    rows: int
    sum: float
    numpy: Callable[[pa.Table], float]
    peers: str


def numpy_mean(table: pa.Table) -> float:
    """The sum of all means over the last second per symbol, of arrays that are sorted as a whole."""
    codes = table.column("symbol").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    order = np.argsort(codes, kind="stable")
    times = table.column("ts").cast(pa.int64()).to_numpy()[order] + codes[order] * (10_000 * SECOND)
    sums = np.append(0.0, np.cumsum(table.column("price").to_numpy()[order]))
    low = np.searchsorted(times, times - SECOND, side="right")
    newest = np.arange(1, len(times) + 1)
    return float(((sums[newest] - sums[low]) / (newest - low)).sum())


def numpy_mean_of_one(table: pa.Table) -> float:
    """As `numpy_mean`, of IBM alone."""
    return numpy_mean(table.filter(pc.equal(table.column("symbol"), "IBM")))


def numpy_change(table: pa.Table) -> float:
    """The sum of all relative changes per symbol, of arrays that are sorted as a whole."""
    codes = table.column("symbol").combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    order = np.argsort(codes, kind="stable")
    price, same = table.column("price").to_numpy()[order], codes[order][1:] == codes[order][:-1]
    return float(((price[1:] - price[:-1]) / price[:-1])[same].sum())


WORKLOADS = (
    Workload(
        "W2a mean of one symbol",
        {"One": {"from": "Ticks", "where": "symbol = 'IBM'"}, "Q": {"from": "One", **MEAN}},
        2_594,
        24_944.3682,
        numpy_mean_of_one,
        "Siddhi 22.8, Esper 20.8, Flink 7.7, Bytewax 4.4",
    ),
    Workload(
        "W2b mean per symbol",
        {"Q": {"from": "Ticks", **MEAN}},
        1_000_000,
        9_487_826.0458,
        numpy_mean,
        "Esper 4.3, Siddhi 4.0, Bytewax 0.74, Flink 0.14-0.70",
    ),
    Workload(
        "rdiff per symbol",
        {"Q": {"from": "Ticks", "modify": {"function": "rdiff", "attributes": ["price"], "partition_by": "symbol"}}},
        999_610,
        12_713.1512,
        numpy_change,
        "-",
    ),
)


def chain_of(queries: dict[str, dict[str, object]]) -> Chain:
    """The operators of some queries over the ticks."""
    stream = {"source": {"format": "memory"}, "schema": SCHEMA, "time": "ts"}
    parsed = parse_ceq(json.dumps({"streams": {"Ticks": stream}, "queries": queries}), "benchmark", {})
    checked, _ = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    plan, _ = build(checked, [])
    return compile_chain([query.operator for query in plan.queries if query.operator is not None])


def rate(rows: int, repeat: int, work: Callable[[], object]) -> str:
    """Median and best rate of some runs, in millions of rows a second."""
    work()
    taken = []
    for _ in range(repeat):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return f"{rows / median(taken) / 1e6:6.1f} ({rows / min(taken) / 1e6:.1f})"


def run(chain: Chain, table: pa.Table, batch: int) -> list[pa.Table]:
    """What the last query gives, for ticks that come in batches with a watermark right behind them."""
    states = begin_chain(chain)
    given = []
    for at in range(0, table.num_rows, batch):
        part = table.slice(at, batch)
        watermark = part.column("ts")[-1].value + 1
        given.append(step_chain(chain, states, {"Ticks": part}, watermark, at + batch >= table.num_rows)["Q"])
    return given


def check_answer(workload: Workload, given: list[pa.Table]) -> None:
    """Stops if the answer is wrong."""
    rows = sum(table.num_rows for table in given)
    total = sum(pc.sum(table.column("price")).as_py() or 0.0 for table in given)
    if rows != workload.rows or abs(total - workload.sum) > 1e-4:
        raise SystemExit(f"{workload.name}: {rows} rows, sum {total:.4f}; right is {workload.rows}, {workload.sum:.4f}")


def main() -> None:
    """Print one line for each workload and way of input."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    plain = ticks()
    encoded = plain.set_column(1, "symbol", plain.column("symbol").combine_chunks().dictionary_encode())
    print("millions of rows a second: median (best)")
    for workload in WORKLOADS:
        chain = chain_of(workload.queries)
        print(workload.name)
        for name, table, batch in (
            ("one batch", plain, plain.num_rows),
            ("one batch, symbols encoded", encoded, plain.num_rows),
            ("batches of 50,000", plain, 50_000),
            ("batches of 1,000", plain, 1_000),
        ):
            check_answer(workload, run(chain, table, batch))
            print(f"  {name:28} {rate(plain.num_rows, repeat, partial(run, chain, table, batch))}")
        print(f"  {'numpy, all rows at once':28} {rate(plain.num_rows, repeat, partial(workload.numpy, plain))}")
        print(f"  {'others':28}   {workload.peers}")


if __name__ == "__main__":
    main()
