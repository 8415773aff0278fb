"""How fast patterns are: `python -m benchmarks.patterns [--repeat N] [--only NAME] [--spark]`, one core in process.

A time is CPU time of the process, median of the runs, so that other work on the machine does not count. Matches are
counted and checked where others have counted them. `published` is MatchRegex in C++ on one core of 3 GHz (Hirzel,
2012), over trades of the same shape; `peer` the fastest of Esper, Siddhi, Flink and Bytewax on the same rows. Symbols
come dictionary-encoded, as Parquet and Arrow hold them; queries take them plain. The limit is one pass of numpy over
all rows: sort by key, compare each price with the one before. With `--spark` the same rows also go through a live run
on two cores, from Parquet files to detections in Parquet files (`benchmarks.spark`); that is by the clock.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks import spark
from benchmarks.ticks import START, ticks
from estream.app import load
from estream.event.operator_chain import Chain, begin_chain, compile_chain, step_chain
from estream.event.pattern import Matcher, compile_pattern
from estream.event.pattern_step import batch_schema, begin, step
from estream.plan.build import build
from estream.plan.model import Plan
from estream.settings import Settings
from estream.spec.check import check
from estream.spec.reader import Read, parse_ceq
from estream.stream.session import open_session

SPECS = Path(__file__).parent.parent / "ceq_specs"
AUTHORS, POSTS, TAGS = 6_142, 200_000, 25
SCHEMA = {"ts": "timestamp", "seq": "bigint", "symbol": "string", "price": "double", "size": "bigint"}
SPARK_TYPES = {**SCHEMA, "post_id": "bigint", "author": "string", "tag1": "string", "tag2": "string", "tag3": "string"}
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
    events: str
    """Queries and events of its CEQ file, over a stream that is called Rows."""
    rows: pa.Table
    count: int | None = None
    others: float | None = None
    queries: tuple[str, ...] = field(default=())
    """Queries between the rows and the pattern, which are computed too."""


def workloads(trades: pa.Table, posts: pa.Table) -> Iterator[Workload]:
    """Everything that is measured."""
    yield named("W4 every start", "large rise+ drop", PEAK, "overlap", trades, 36_876, 4.4e6)
    yield named("W4 past last", "large rise+ drop", PEAK, "past_last", trades, 32_977, 4.4e6)
    pattern = ". rise+ drop+ rise+ drop* deep"
    yield named("W5 every start", pattern, TOP, "overlap", trades, 60_160, 2.4e6)
    # Peers that prefer the match that began first count 40,477; here the first that is complete is reported.
    yield named("W5 past last", pattern, TOP, "past_last", trades, 40_703, 2.4e6)
    for name, published in PUBLISHED.items():
        path = next(SPECS.glob(f"*/{name}.yaml"))
        plan = load(path, {}).plan
        assert plan is not None
        queries = tuple(query.name for query in plan.queries)
        text = re.split(r"^(?=queries:|events:)", path.read_text(), maxsplit=1, flags=re.MULTILINE)[1]
        over_rows = re.sub(r"\b(Trades|Posts)\b", "Rows", text)
        rows = posts if path.parent.name == "social" else with_symbols(trades, encoded=not queries)
        rows = slower(rows) if name == "rise_then_flat" else rows
        yield Workload(name, plan, over_rows, rows, None, published, queries)


def named(
    name: str, pattern: str, define: dict[str, str], skip: str, rows: pa.Table, count: int | None, others: float
) -> Workload:
    """A workload of one pattern over trades."""
    event = {"on": "Rows", "id": ["seq"], "partition_by": "symbol", "pattern": pattern, "define": define}
    event |= {"skip": skip, "output": {"symbol": "symbol", "since": "first(seq)", "n": "count()", "top": "max(price)"}}
    stream = {"source": {"format": "memory"}, "schema": SCHEMA, "time": "ts"}
    parsed = parse_ceq(json.dumps({"streams": {"Rows": stream}, "events": {"M": event}}), "benchmark", {})
    checked, _ = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    events = f"events: {json.dumps({'M': event})}\n"
    return Workload(name, build(checked, ["M"])[0], events, rows, count, others)


def with_symbols(trades: pa.Table, encoded: bool) -> pa.Table:
    """The trades, their symbols dictionary-encoded or plain."""
    kind = pa.dictionary(pa.int32(), pa.string()) if encoded else pa.string()
    place = trades.column_names.index("symbol")
    return trades.set_column(place, "symbol", trades.column("symbol").cast(kind))


def slower(trades: pa.Table) -> pa.Table:
    """The trades, so far apart that a price stays for minutes now and then."""
    times = pa.array(START + 400_000 * np.arange(trades.num_rows)).cast(pa.timestamp("us", "UTC"))
    return trades.set_column(trades.column_names.index("ts"), "ts", times)


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
    batch = pa.table([*own, *(rows.column(name) for name in matcher.needed)], names=batch_schema(matcher).names)
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


def through_spark(session: SparkSession, workload: Workload, folder: Path) -> float:
    """Events a second of a live run."""
    shutil.rmtree(folder / "rows", ignore_errors=True)
    spark.write(folder / "rows", workload.rows)
    schema = ", ".join(f"{name}: {SPARK_TYPES[name]}" for name in workload.rows.column_names)
    rule = f'rules: {{Tell: {{on: {workload.plan.patterns[0].name}, actions: [{{log: "found"}}]}}}}\n'
    live = spark.Workload(workload.name, schema, workload.events + rule)
    return spark.detected(session, live, folder, workload.rows.num_rows)[0] * 1e6


def row_of(workload: Workload, repeat: int, limit: float, live: Callable[[Workload], float] | None) -> str:
    """The line of a workload."""
    matcher = compile_pattern(workload.plan.patterns[0])
    operators = [query.operator for query in workload.plan.queries if query.operator is not None]
    work = partial(matched, workload, matcher, compile_chain(operators) if operators else None)
    count = work()
    if workload.count is not None and count != workload.count:
        raise SystemExit(f"{workload.name}: {count} matches, right is {workload.count}")
    rate = workload.rows.num_rows / cpu(repeat, work)
    cells = [workload.name, f"{count:,}", f"{rate / 1e6:.1f} M", f"{limit / 1e6:.1f} M"]
    cells += [f"{workload.others:,.0f}", f"{rate / workload.others:.1f}x"] if workload.others else ["", ""]
    if live is not None:
        reached = live(workload)
        cells += [f"{reached / 1e6:.2f} M", f"{reached / workload.others:.1f}x" if workload.others else ""]
    return f"| {' | '.join(cells)} |"


def print_rows(chosen: Iterable[Workload], repeat: int, limit: float, live: Callable[[Workload], float] | None) -> None:
    """The table, line by line as it is measured."""
    titles = ["pattern", "matches", "events a second", "one numpy pass", "peer or published", ""]
    titles += [] if live is None else ["through Spark", ""]
    print(f"| {' | '.join(titles)} |")
    print("|---" * len(titles) + "|")
    for workload in chosen:
        print(row_of(workload, repeat, limit, live), flush=True)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--spark", action="store_true", help="also through Spark")
    parser.add_argument("--only", default="", help="workloads whose names have this in them")
    given = parser.parse_args()
    data = ticks()
    trades = data.rename_columns(["ts", "symbol", "price", "size"]).append_column("seq", pa.array(np.arange(len(data))))
    codes = data.column("symbol").combine_chunks().dictionary_encode().indices.to_numpy()
    limit = len(data) / cpu(given.repeat, partial(one_pass, codes, data.column("price").to_numpy()))
    encoded = with_symbols(trades, encoded=True)
    chosen = [one for one in workloads(encoded, generated_posts()) if given.only in one.name]
    if not given.spark:
        print_rows(chosen, given.repeat, limit, None)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = open_session(Settings(), "bench", {"spark.master": "local[2]"}, folder / "spark.log")
        print_rows(chosen, given.repeat, limit, lambda one: through_spark(session, one, folder))


if __name__ == "__main__":
    main()
