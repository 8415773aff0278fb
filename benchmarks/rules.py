"""Throughput of rules: detections recorded, fired, run with a callback that does nothing, and recorded as done.

    python benchmarks/rules.py

Beside it, in the same run and with the same commit settings, the same rows go into the same tables by plain bulk
inserts of SQLAlchemy: the limit to come close to. The last part takes 100,000 detections in one micro-batch and says
how much memory that needed. Processor time is given too, for it does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import gc
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from sqlalchemy import insert

from estream.history.database import Database
from estream.history.store import DatabaseStore
from estream.history.tables import attempts, detections, firings
from estream.plan.build import build
from estream.rule.action import Services
from estream.rule.agenda import Agenda, now
from estream.rule.detection import Detected, Detection, Occurrence
from estream.rule.row import table_of
from estream.rule.rule import RuleSet, build_rules
from estream.rule.values import constituents_to_json
from estream.settings import RuleSettings
from estream.spec.check import check
from estream.spec.reader import Read, parse_ceq

CEQ = """
streams:
  Rows: {source: {format: memory}, schema: {ts: timestamp, n: bigint, x: double, name: string}, time: ts}
events:
  A: {on: Rows}
  B: {on: Rows}
  Pair: {when: A ; B, context: chronicle, partition_by: n}
rules:
  r: {on: Pair, condition: B.x >= A.x, actions: [{log: "x"}]}
"""


def nothing(detection: Detection) -> None:
    """The callback of the benchmark."""


def rules_of() -> RuleSet:
    """One rule with a condition, whose only action is the callback."""
    parsed = parse_ceq(CEQ, "bench.yaml", {})
    checked, _ = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    plan, _ = build(checked, ["Pair"])
    rules = build_rules(checked, plan, RuleSettings(), Services(), {"r": [nothing]})
    only = rules.rules["r"]
    return replace(rules, rules={"r": replace(only, actions=only.actions[1:])})


def batch_of(rules: RuleSet, first: int, size: int) -> tuple[list[Detected], pa.Table]:
    """Detections of two constituents with four attributes each, as objects and as the table that the stream gives."""
    found = []
    for number in range(first, first + size):
        values = {"n": number % 1000, "x": 1.5, "name": "sensor"}
        parts = tuple(Occurrence(event, number, number, values) for event in ("A", "B"))
        found.append(Detected("Pair", None, number, number, number * 2_654_435_761 % 2**62, parts))
    one = table_of(rules.layout, found[0])
    members = pa.concat_arrays([one.column("constituents").combine_chunks().values] * size)
    lists = pa.LargeListArray.from_arrays(pa.array(range(0, 2 * size + 1, 2), pa.int64()), members)
    table = one.take(pa.array([0] * size))
    for name in ("start", "end", "id"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array([getattr(each, name) for each in found], pa.int64()))
    return found, table.set_column(table.schema.get_field_index("constituents"), "constituents", lists)


Seconds = tuple[float, float]
"""By the clock, and of the processor."""


def engine_seconds(folder: Path, rules: RuleSet, batches: int, size: int) -> Seconds:
    """Time to take micro-batches: everything the agenda does."""
    tables = [batch_of(rules, number * size, size)[1] for number in range(batches)]
    database = Database(f"sqlite:///{folder}/engine.db")
    agenda = Agenda(rules, DatabaseStore(database, "bench"), RuleSettings(), Services())
    agenda.start()
    begun, used = time.perf_counter(), time.process_time()
    for number, table in enumerate(tables):
        agenda.take(number, table)
    took = time.perf_counter() - begun, time.process_time() - used
    agenda.close()
    database.close()
    return took


def raw_seconds(folder: Path, rules: RuleSet, batches: int, size: int) -> Seconds:
    """Time to insert the same rows in bulk: one transaction for detections and firings, one for attempts."""
    groups = [batch_of(rules, number * size, size)[0] for number in range(batches)]
    database = Database(f"sqlite:///{folder}/raw.db")
    database.upgrade()
    begun, used = time.perf_counter(), time.process_time()
    for number, group in enumerate(groups):
        with database.begin() as connection:
            connection.execute(insert(detections), [
                {"event": 1, "id": one.id, "start": one.start, "end": one.end, "batch": number, "tick": None,
                 "ticks": None, "constituents": constituents_to_json(one.constituents), "recorded": now()}
                for one in group
            ])  # fmt: skip
            connection.execute(insert(firings), [
                {"rule": 1, "version": 1, "event": 1, "detection": one.id, "partition": None, "state": "done"}
                for one in group
            ])  # fmt: skip
        with database.begin() as connection:
            connection.execute(insert(attempts), [
                {"rule": 1, "detection": one.id, "number": 1, "action": 0, "started": 0, "duration": 1, "error": None}
                for one in group
            ])  # fmt: skip
    took = time.perf_counter() - begun, time.process_time() - used
    database.close()
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Firings a second, beside plain bulk inserts.")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--size", type=int, default=5_000, help="detections of a micro-batch")
    parser.add_argument("--large", type=int, default=100_000, help="detections of the one large micro-batch")
    given = parser.parse_args()
    total = given.batches * given.size
    rules = rules_of()
    gc.freeze()  # as `estream run` does
    with tempfile.TemporaryDirectory() as folder:
        engine_seconds(Path(folder) / "warm", rules, 1, 100)
        ours = engine_seconds(Path(folder), rules, given.batches, given.size)
        raw = raw_seconds(Path(folder), rules, given.batches, given.size)
        for name, (clock, used) in (("recorded and run", ours), ("plain bulk inserts", raw)):
            print(f"{name:20}{total / clock:10,.0f} firings/s{used / total * 1e6:10.1f} us of processor time each")
        print(f"{'ratio':20}{ours[0] / raw[0]:10.1f}{'':10}{ours[1] / raw[1]:10.1f}")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        took, _ = engine_seconds(Path(folder) / "large", rules, 1, given.large)
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"one micro-batch of {given.large:,}: {given.large / took:,.0f} firings/s, {more:,.0f} MB more memory")


if __name__ == "__main__":
    main()
