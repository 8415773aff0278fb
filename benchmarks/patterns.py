"""How fast patterns are in process, on one core: `python -m benchmarks.patterns [--repeat N]`.

A time is CPU time of the process, median of the runs, so that other work on the machine does not count. Matches are
counted and checked where others have counted them. `published` is MatchRegex in C++ on one core of 3 GHz (Hirzel,
2012), over trades of the same shape; `peer` the fastest of Esper, Siddhi, Flink and Bytewax on the same rows. The limit
is one pass of numpy over all rows: sort by key, compare each price with the one before.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from benchmarks.ticks import ticks
from estream.app import load
from estream.event.operator_chain import Chain, begin_chain, compile_chain, step_chain
from estream.event.pattern import Matcher, compile_pattern
from estream.event.pattern_step import batch_schema, begin, step
from estream.plan.build import build
from estream.plan.model import Plan
from estream.spec.check import check
from estream.spec.reader import Read, parse_ceq

SPECS = Path(__file__).parent.parent / "ceq_specs"
AUTHORS, POSTS, TAGS = 6_142, 200_000, 25
SCHEMA = {"ts": "timestamp", "seq": "bigint", "symbol": "string", "price": "double", "size": "bigint"}
PEAK = {"large": "size >= 9000", "rise": "price > last(price)", "drop": "price < last(price)"}
TOP = {
    "rise": "price > first(price) AND price >= last(price)",
    "drop": "price >= first(price) AND price < last(price)",
    "deep": "price < first(price) AND price < last(price)",
}
PUBLISHED = {
    "large_trade_then_peak": 778_584,
    "double_top": 708_118,
    "rise_then_flat": 832_469,
    "far_above_average": 229_090,
    "highs_below_lows": 371_753,
    "large_increase": 235_672,
    "five_same_tags": 6_267,
    "disjoint_tags": 316,
}
"""Events a second; those of posts include reading XML."""


@dataclass(frozen=True)
class Workload:
    """A pattern, the rows it is asked of, how many matches are right, and how fast others are."""

    name: str
    plan: Plan
    rows: pa.Table
    count: int | None = None
    others: float | None = None
    queries: tuple[str, ...] = field(default=())
    """Queries between the rows and the pattern, which are computed too."""


def workloads(trades: pa.Table, posts: pa.Table) -> Iterator[Workload]:
    """Everything that is measured."""
    yield Workload("W4 every start", plan_of("large rise+ drop", PEAK, "overlap"), trades, 36_876, 4.4e6)
    yield Workload("W4 past last", plan_of("large rise+ drop", PEAK, "past_last"), trades, 32_977, 4.4e6)
    pattern = ". rise+ drop+ rise+ drop* deep"
    yield Workload("W5 every start", plan_of(pattern, TOP, "overlap"), trades, 60_160, 2.4e6)
    yield Workload("W5 past last", plan_of(pattern, TOP, "past_last"), trades, None, 2.4e6)
    for name, published in PUBLISHED.items():
        path = next(SPECS.glob(f"*/{name}.yaml"))
        plan = load(path, {}).plan
        assert plan is not None
        queries = tuple(query.name for query in plan.queries)
        yield Workload(name, plan, posts if path.parent.name == "social" else trades, None, published, queries)


def plan_of(pattern: str, define: dict[str, str], skip: str) -> Plan:
    """The plan of a pattern over trades."""
    event = {"on": "Trades", "id": ["seq"], "partition_by": "symbol", "pattern": pattern, "define": define}
    event |= {"skip": skip, "output": {"symbol": "symbol", "since": "first(seq)", "n": "count()", "top": "max(price)"}}
    stream = {"source": {"format": "memory"}, "schema": SCHEMA, "time": "ts"}
    parsed = parse_ceq(json.dumps({"streams": {"Trades": stream}, "events": {"M": event}}), "benchmark", {})
    checked, _ = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    return build(checked, ["M"])[0]


def generated_posts() -> pa.Table:
    """Posts of 6,142 authors with one to three of 25 tags; most of an author's posts are about the same."""
    chance = np.random.default_rng(20260101)
    author = chance.integers(0, AUTHORS, POSTS)
    favourite = chance.integers(0, TAGS, (AUTHORS, 3))
    tags = np.where(chance.random(POSTS)[:, None] < 0.8, favourite[author], chance.integers(0, TAGS, (POSTS, 3)))
    names = np.array([f"tag{number:02d}" for number in range(TAGS)])[np.sort(tags, axis=1)]
    columns = {f"tag{place + 1}": names[:, place].tolist() for place in range(3)}
    ts = pa.array(1_600_000_000_000_000 + 660_000 * np.arange(POSTS)).cast(pa.timestamp("us", "UTC"))
    people = [f"author{number}" for number in author.tolist()]
    return pa.table({"ts": ts, "post_id": np.arange(POSTS), "author": people, **columns})


def matched(workload: Workload, matcher: Matcher, chain: Chain | None) -> int:
    """Run a workload over all its rows at once; gives how many matches there are."""
    rows = workload.rows
    if chain is not None:
        given = {"Trades": rows}
        rows = step_chain(chain, begin_chain(chain), given, rows.column("ts")[-1].value + 1, True)[workload.queries[-1]]
    time_column = rows.column("ts").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    own = [pa.array(np.zeros(rows.num_rows, dtype=np.int64)), time_column, rows.column(matcher.pattern.id[0])]
    batch = pa.table([*own, *(rows.column(name) for name in matcher.needed)], schema=batch_schema(matcher))
    return step(matcher, begin(matcher), batch, 0, end_of_input=True).detections.num_rows


def cpu(repeat: int, work: Callable[[], object]) -> float:
    """Median CPU seconds of some runs, after one that does not count."""
    work()
    taken = []
    for _ in range(repeat):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return median(taken)


def one_pass(codes: np.ndarray, values: np.ndarray) -> int:
    """Sort by key, and count the values that are above the one before of the same key."""
    order = np.argsort(codes, kind="stable")
    keys, sorted_ = codes[order], values[order]
    return int(((sorted_[1:] > sorted_[:-1]) & (keys[1:] == keys[:-1])).sum())


def row_of(workload: Workload, repeat: int, limit: float) -> str:
    """The line of a workload."""
    matcher = compile_pattern(workload.plan.patterns[0])
    operators = [query.operator for query in workload.plan.queries if query.operator is not None]
    work = partial(matched, workload, matcher, compile_chain(operators) if operators else None)
    count = work()
    if workload.count is not None and count != workload.count:
        raise SystemExit(f"{workload.name}: {count} matches, right is {workload.count}")
    rate = workload.rows.num_rows / cpu(repeat, work)
    others = f"{workload.others:,.0f} | {rate / workload.others:.1f}x" if workload.others else "|"
    return f"| {workload.name} | {count:,} | {rate / 1e6:.1f} M | {limit / 1e6:.1f} M | {others} |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    data = ticks()
    trades = data.rename_columns(["ts", "symbol", "price", "size"]).append_column("seq", pa.array(np.arange(len(data))))
    codes = data.column("symbol").combine_chunks().dictionary_encode().indices.to_numpy()
    limit = len(data) / cpu(repeat, partial(one_pass, codes, data.column("price").to_numpy()))
    print("| pattern | matches | events a second | one numpy pass | peer or published | |")
    print("|---|---|---|---|---|---|")
    for workload in workloads(trades, generated_posts()):
        print(row_of(workload, repeat, limit), flush=True)


if __name__ == "__main__":
    main()
