"""How fast the detection core is: `python -m benchmarks.core [fraud.parquet]` prints the table of docs/performance.md.

One thread, 1 M events a batch, detections gathered with their attributes. A time is CPU time of the process, so that
other work on the machine does not count. `first` is the batch of a fresh state, `then` the median of those after it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.fraud import ROWS, Fraud, generated, read
from estream.event.detect import step
from estream.event.graph import Graph, compile_graph
from estream.event.rows import batch_schema
from estream.event.segments import load, save
from estream.event.state import State, begin
from estream.testing import Row, plan_of

BATCHES = 5
CONTEXTS = ("unrestricted", "recent", "chronicle", "continuous", "cumulative")
PEERS = {"W3": (489_724, 2.27), "W3w": (466_808, 1.15)}
"""Detections, and the fastest peer's million events a second on one core."""
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    "MALLOC_TOP_PAD_": str(1 << 26),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""Memory that was freed is kept by the process: else every batch pays for fresh pages."""
TRIAL = """
import time
begun = time.perf_counter()
from estream.testing import detect, row
rows = [row("A1", 1, k=1, v=1), row("B2", 2, k=1, v=2)]
assert detect("A ; B", events=rows, partition_by=["k"], mask="A.v < B.v") == ["A1 B2"]
print(time.perf_counter() - begun)
"""


@dataclass(frozen=True)
class Workload:
    """An event over A (warnings), B (PIN changes) and, where it is named, C (every fourth row).

    Where B is not named all rows are A.
    """

    name: str
    definitions: Mapping[str, Mapping[str, Any]]
    count: int | None = None
    peer: float | None = None


def keyed(name: str, when: str, context: str, **options: str) -> Workload:
    """A workload of one event, partitioned by account."""
    count, peer = PEERS.get(name, (None, None))
    event = {"when": when, "context": context, "partition_by": ["account"], **options}
    return Workload(name, {"E": event}, count, peer)


def workloads() -> Iterator[Workload]:
    """Everything that is measured."""
    yield keyed("W3", "A ; B", "continuous")
    yield keyed("W3w", "A ; B", "continuous", within="60 s")
    for context in CONTEXTS:
        yield keyed(f"A ; B {context}", "A ; B", context, within="5 s")
    for context in ("chronicle", "continuous"):
        yield keyed(f"A ; B {context}, A.v < B.v", "A ; B", context, within="5 s", mask="A.v < B.v")
    yield keyed("A and B", "A and B", "chronicle", within="5 s")
    yield keyed("not(C)[A, B]", "not(C)[A, B]", "chronicle", within="5 s")
    yield keyed("A(A, C, B)", "A(A, C, B)", "chronicle", within="5 s")
    yield keyed("A*(A, C, B)", "A*(A, C, B)", "chronicle", within="5 s")
    yield keyed("absent(A, B, 5 s)", "absent(A, B, 5 s)", "chronicle")
    yield keyed("times(3, A)", "times(3, A)", "chronicle", within="60 s")
    many = {
        f"E{n}": {"when": "A ; B", "context": "chronicle", "partition_by": ["account"], "within": f"{10 * n} ms"}
        for n in range(1, 101)
    }
    yield Workload("100 events that share leaves", many)


def graph_of(workload: Workload) -> Graph:
    """The graph of a workload."""
    rows = [Row("A", 0, 0, {"account": 0, "v": 0})]
    return compile_graph(plan_of(workload.definitions, rows, list(workload.definitions)))


def batches(graph: Graph, data: Fraud) -> Iterator[pa.Table]:
    """The data again and again, each time later."""
    event = np.full(ROWS, graph.event_code("A"))
    if "B" in graph.events:
        event[~data.warning] = graph.event_code("B")
    if "C" in graph.events:
        event[::4] = graph.event_code("C")
    schema = batch_schema(graph)
    span = int(data.time[-1] - data.time[0]) + 1_000
    for number in range(BATCHES):
        ids, moment = data.number + number * ROWS, data.time + number * span
        columns = {"event": event, "time": moment, "id": ids, "account": data.account, "v": data.number % 97}
        columns |= {"ts": moment, "row_id": ids}
        yield pa.table([pa.array(columns[name]).cast(schema.field(name).type) for name in schema.names], schema=schema)


def measured(work: Any) -> tuple[float, Any]:
    """CPU seconds, and what the work gives."""
    begun = time.process_time()
    result = work()
    return time.process_time() - begun, result


def warm(graph: Graph, given: list[pa.Table]) -> None:
    """Let all machine code be loaded, and the allocator have seen what it will be asked for."""
    for batch in given:
        step(graph, begin(graph), batch, batch["time"][-1].as_py() + 1)


def run(workload: Workload, data: Fraud) -> str:
    """The row of a workload."""
    graph = graph_of(workload)
    given = list(batches(graph, data))
    warm(graph, given)
    state = begin(graph)
    times, found = [], 0
    for number, batch in enumerate(given):
        watermark = batch["time"][-1].as_py() + 1
        spent, detected = measured(lambda b=batch, w=watermark: step(graph, state, b, w))
        times.append(spent)
        found = detected.detections.num_rows if number == 0 else found
    if workload.count is not None and found != workload.count:
        raise SystemExit(f"{workload.name} gave {found} detections, not {workload.count}")
    first, then = times[0], median(times[1:])
    peer = f"{workload.peer:.2f} M, {1 / then / workload.peer:.1f}x" if workload.peer else ""
    limit = limit_of(data)
    return (
        f"| {workload.name} | {found:,} | {first * 1e3:.0f} ms | {then * 1e3:.0f} ms | {1 / then:.1f} M | "
        f"{limit * 1e3:.0f} ms | {then / limit:.1f}x | {peer} |"
    )


def limit_of(data: Fraud) -> float:
    """One pass of numpy over the same columns: sums, and a sort of the key."""

    def once() -> float:
        sums = [column.sum() for column in (data.number, data.time, data.warning, data.account)]
        return float(sum(sums) + np.sort(data.account)[0])

    return min(measured(once)[0] for _ in range(3))


def state_rows(data: Fraud) -> Iterator[str]:
    """Size of a million waiting occurrences, and the time to write and read them."""
    graph = graph_of(keyed("", "A ; B", "unrestricted"))
    state = begin(graph)
    batch = next(batches(graph, data))
    warm(graph, [batch])
    batch = batch.set_column(0, "event", pa.array(np.full(ROWS, graph.event_code("A"))))
    stepped, _ = measured(lambda: step(graph, state, batch, batch["time"][-1].as_py() + 1))
    wrote, saved = measured(lambda: save(graph, state))
    size = sum(map(len, saved.segments.values()))
    loaded, (again, _) = measured(lambda: load(graph, saved.segments))
    small, changed = measured(lambda: _one_more(graph, again, batch))
    yield f"| step of 1 M that wait | {stepped * 1e3:.0f} ms | |"
    yield f"| save 1 M waiting | {wrote * 1e3:.0f} ms | {size / ROWS:.0f} bytes each |"
    yield f"| load 1 M waiting | {loaded * 1e3:.0f} ms | |"
    yield f"| one row more, and save | {small * 1e3:.0f} ms | {changed:,} bytes |"


def _one_more(graph: Graph, state: State, batch: pa.Table) -> int:
    save(graph, state)
    later = batch["time"][-1].as_py() + 1_000
    row = batch.slice(0, 1).set_column(1, "time", pa.array([later])).set_column(2, "id", pa.array([ROWS]))
    step(graph, state, row, later + 1)
    return sum(map(len, save(graph, state).segments.values()))


def compile_rows() -> Iterator[str]:
    """Time to the first detection in a fresh process, with an empty and with a full cache of machine code."""
    root = str(Path(__file__).parent.parent)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ESTREAM_CACHE_DIR": folder, "PYTHONPATH": root}
        for name in ("cold", "warm"):
            done = subprocess.run(
                [sys.executable, "-c", TRIAL], env=environment, capture_output=True, text=True, check=True
            )
            yield f"| {name} start to the first detection | {float(done.stdout):.1f} s | |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, help="fraud.parquet; without it the data is generated")
    parser.add_argument("--only", default="", help="workloads whose name begins so")
    options = parser.parse_args()
    if not ALLOCATOR.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.core", *sys.argv[1:]], {**os.environ, **ALLOCATOR})
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    data = read(options.data) if options.data else generated()
    print("| workload | detections | first | then | events/s | numpy pass | ratio | fastest peer |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for workload in workloads():
        if workload.name.startswith(options.only):
            print(run(workload, data), flush=True)
    if not options.only:
        print("\n| state | CPU time | size |\n|---|---:|---:|")
        for row in (*state_rows(data), *compile_rows()):
            print(row, flush=True)


if __name__ == "__main__":
    main()
