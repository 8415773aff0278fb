"""The fault run: the process is killed again and again while rules call a counting server; nothing may be lost.

    python benchmarks/faults.py --kills 30

The child process takes micro-batches and notes the last one it has taken, as Spark's checkpoint does. It is killed with
SIGKILL at each named commit point in turn and after random numbers of calls, and started again. At the end every
detection and every firing must be recorded once, every firing done, every idempotency key seen by the server, and a key
seen again only if its firing was under way when the process was killed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
from sqlalchemy import text

from estream.errors import EStreamError
from estream.history.database import Database
from estream.history.store import DatabaseStore
from estream.plan.build import build
from estream.rule.action import Services
from estream.rule.agenda import POINTS, Agenda
from estream.rule.detection import Detected, Occurrence
from estream.rule.perform import idempotency_key
from estream.rule.recorder import AHEAD_REMOTE
from estream.rule.row import table_of
from estream.rule.rule import RuleSet, build_rules
from estream.settings import RuleSettings
from estream.spec.check import check
from estream.spec.reader import Read, parse_ceq

SIZE = 20
"""Detections of a micro-batch."""
WORKERS = 4
UNDER_WAY = 1 + WORKERS + 2 * (AHEAD_REMOTE + WORKERS)
"""One in line and one on each worker; and outcomes that wait for their record or are just being recorded."""
RULES = ("first", "second", "later", "apart")
CEQ = """
streams:
  Rows: {{source: {{format: memory}}, schema: {{ts: timestamp, n: bigint}}, time: ts}}
events:
  A: {{on: Rows}}
rules:
  first: {{on: A, priority: 10, retry: {{attempts: 100}}, actions: [{hook}]}}
  second: {{on: A, condition: A.n >= 0, retry: {{attempts: 100}}, actions: [{hook}]}}
  later: {{on: A, coupling: deferred, retry: {{attempts: 100}}, actions: [{hook}]}}
  apart: {{on: A, coupling: detached, retry: {{attempts: 100}}, actions: [{hook}]}}
"""


def rules_for(url: str) -> RuleSet:
    """The rules of the run, which call the server."""
    parsed = parse_ceq(CEQ.format(hook=f'{{webhook: {{url: "{url}", body: "{{A.n}}"}}}}'), "faults.yaml", {})
    checked, problems = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    plan, _ = build(checked)
    if parsed.problems or problems:
        raise EStreamError([*parsed.problems, *problems])
    return build_rules(checked, plan, RuleSettings(workers=WORKERS), Services(allow_private=True))


def batch_of(rules: RuleSet, number: int) -> pa.Table:
    """The detections of a micro-batch, always the same."""
    rows = range(number * SIZE, (number + 1) * SIZE)
    return pa.concat_tables(
        table_of(rules.layout, Detected("A", None, n, n, 1_000 + n, (Occurrence("A", n, n, {"n": n}),))) for n in rows
    )


def child(folder: Path, url: str, batches: int, point: str, passes: int) -> None:
    """Take micro-batches from the one that is next; end by SIGKILL at the given passing of a commit point."""
    seen: Counter[str] = Counter()
    lock = threading.Lock()

    def reach(reached: str) -> None:
        with lock:
            seen[reached] += 1
            if reached == point and seen[point] == passes:
                os.kill(os.getpid(), signal.SIGKILL)

    rules = rules_for(url)
    settings, services = RuleSettings(workers=WORKERS), Services(allow_private=True)
    database = Database(f"sqlite:///{folder}/history.db")
    agenda = Agenda(rules, DatabaseStore(database, rules.ceq), settings, services, reach=reach)
    agenda.start()
    noted = folder / "noted"
    for number in range(int(noted.read_text()) if noted.exists() else 0, batches):
        agenda.take(number, batch_of(rules, number))
        new = folder / "noted.new"
        new.write_text(str(number + 1))
        new.replace(noted)
    while database_states(database).keys() != {"done"}:
        time.sleep(0.02)
    agenda.close()


def database_states(database: Database) -> dict[str, int]:
    """How many firings there are in each state."""
    with database.begin() as connection:
        rows = connection.execute(text("SELECT state, count(*) AS number FROM firings GROUP BY state"))
        return {row.state: row.number for row in rows}


class Counting(ThreadingHTTPServer):
    """A server that counts idempotency keys, and takes a moment for each."""

    daemon_threads = True

    def __init__(self) -> None:
        self.keys: Counter[str] = Counter()
        self.lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook"

    def total(self) -> int:
        """All calls so far."""
        with self.lock:
            return self.keys.total()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed leaves its connection broken: that is what is tested."""


class _Handler(BaseHTTPRequestHandler):
    server: Counting

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.keys[self.headers["Idempotency-Key"]] += 1
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def counting() -> Iterator[Counting]:
    """A counting server on a thread."""
    server = Counting()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@dataclass
class Report:
    """What the kills came to."""

    kills: int = 0
    under_way: Counter[str] = field(default_factory=Counter)
    """For each key the kills at which the server had seen it and its firing was not recorded as done."""
    most: int = 0
    """The most firings that were under way at one kill."""


def run(folder: Path, kills: int, batches: int, seed: int, say: Callable[[str], None]) -> list[str]:
    """Make the run; gives what is wrong."""
    chance, report = random.Random(seed), Report()
    with counting() as server:
        while report.kills < kills:
            point = POINTS[report.kills % len(POINTS)] if report.kills % 2 == 0 else ""
            killed = _once(folder, server, batches, point, chance)
            if not killed:
                break
            report.kills += 1
            _note(folder, server, report)
            say(f"kill {report.kills}: {point or 'at random'}, {_taken(folder)} of {batches} micro-batches taken")
        _once(folder, server, batches, "never", chance)
        return _judge(folder, server, report, kills, batches)


def _once(folder: Path, server: Counting, batches: int, point: str, chance: random.Random) -> bool:
    """Run a child; true if it was killed. Without a commit point it is killed after a random number of calls."""
    until = server.total() + chance.randint(0, 2 * SIZE)
    passes = chance.randint(1, 3 if point in ("before record", "after record", "batch done") else 25)
    command = [sys.executable, __file__, "--child", str(folder), server.url, str(batches), point, str(passes)]
    process = subprocess.Popen(command)
    if not point:
        while server.total() < until and process.poll() is None:
            time.sleep(0.001)
        process.kill()
    status = process.wait(timeout=120)
    if status not in (0, -signal.SIGKILL):
        raise SystemExit(f"the child ended with status {status}")
    return status != 0


def _taken(folder: Path) -> int:
    noted = folder / "noted"
    return int(noted.read_text()) if noted.exists() else 0


def _note(folder: Path, server: Counting, report: Report) -> None:
    """After a kill: which firings had called the server and are not recorded as done."""
    file = folder / "history.db"
    if not file.exists():
        return
    database = Database(f"sqlite:///{file}")
    database.upgrade()
    asked = "SELECT rules.name, detection FROM firings JOIN rules ON rules.number = firings.rule WHERE state <> 'done'"
    with database.begin() as connection:
        open_keys = {idempotency_key("ceq", row.name, row.detection, 0) for row in connection.execute(text(asked))}
    database.close()
    with server.lock:
        under_way = [key for key in open_keys if key in server.keys]
    report.under_way.update(under_way)
    report.most = max(report.most, len(under_way))


def _judge(folder: Path, server: Counting, report: Report, kills: int, batches: int) -> list[str]:
    database = Database(f"sqlite:///{folder}/history.db")
    wanted = {idempotency_key("ceq", rule, 1_000 + n, 0) for rule in RULES for n in range(batches * SIZE)}
    with database.begin() as connection:
        detections = connection.execute(text("SELECT count(*) FROM detections")).scalar()
    states = database_states(database)
    database.close()
    again = {key: count - 1 for key, count in server.keys.items() if count > 1}
    wrong = [
        (report.kills < kills, f"only {report.kills} of {kills} kills: give more --batches"),
        (detections != batches * SIZE, f"{detections} detections are recorded, not {batches * SIZE}"),
        (states != {"done": len(wanted)}, f"firings are {states}, not {len(wanted)} done"),
        (server.keys.keys() != wanted, f"{len(wanted - server.keys.keys())} keys were never seen"),
        (
            any(count > report.under_way[key] for key, count in again.items()),
            f"keys were repeated for nothing: {again}",
        ),
        (report.most > UNDER_WAY, f"{report.most} firings were under way at one kill, more than {UNDER_WAY}"),
    ]
    print(
        f"{report.kills} kills, {len(wanted)} firings, {sum(again.values())} calls repeated, "
        f"at most {report.most} under way at a kill"
    )
    return [message for is_wrong, message in wrong if is_wrong]


def main() -> None:
    """Make a run, or be its child."""
    parser = argparse.ArgumentParser(description="Kill rules at work, and see that nothing is lost or done twice.")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--batches", type=int, default=60, help="micro-batches in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        folder, url, batches, point, passes = given.child
        child(Path(folder), url, int(batches), point, int(passes))
        return
    with tempfile.TemporaryDirectory() as folder:
        wrong = run(Path(folder), given.kills, given.batches, given.seed, lambda line: print(line, flush=True))
    for message in wrong:
        print(f"wrong: {message}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
