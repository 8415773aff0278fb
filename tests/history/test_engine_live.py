"""EStream as a library: a program of one's own registers functions, runs a file on Spark, and asks the history."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

CEQ = """\
version: 1
name: trades
settings: {detection: {shards: 2}}
streams:
  Trades:
    source: {format: json, options: {path: trades}}
    schema: {ts: timestamp, seq: bigint, symbol: string, price: double}
    time: ts
    watermark: 1 s
events:
  Trade: {on: Trades, id: [seq]}
  Rise:
    on: Trades
    id: [seq]
    partition_by: symbol
    within: 1 hour
    pattern: . up{2}
    define: {up: price > last(price)}
    output: {symbol: symbol, since: first(seq), gain: last(price) - first(price)}
  Fall: {on: Trades, mask: price < 5, id: [seq]}
  Crash: {when: Rise ; Fall, context: recent, partition_by: symbol}
rules:
  Steep: {on: Rise, condition: Rise.gain > 5, actions: [{file: "steep/{Rise.symbol}.jsonl"}]}
  Sell: {on: Crash, condition: Rise.gain > Fall.price, actions: [{log: "sell {Rise.symbol}"}]}
"""
PROGRAM = """
import json
import estream

told = []

def steep(d):
    told.append(("Steep", d.Rise.symbol, d.Rise.gain, d.start.second, d.end.second))

async def crash(d):
    told.append(("Crash", d.Rise.symbol, d["Fall"].price, d.Rise.since))

class Counter:
    def __init__(self):
        self.calls = 0

    def __call__(self, d):
        self.calls += 1

counter = Counter()
estream.Engine("trades.yaml").on("Steep", steep).on("Crash", crash).on("Trade", counter).run(once=True)
print("told", json.dumps([sorted(told), counter.calls]))
"""
PRICES = {"AB": [10, 12, 16, 4, 5, 6], "CD": [20, 21, 22, 30, 40, 1]}


def test_a_program_runs_a_file_with_functions_of_its_own_also_on_patterns(tmp_path: Path) -> None:
    (tmp_path / "trades").mkdir()
    (tmp_path / "trades.yaml").write_text(CEQ)
    (tmp_path / "program.py").write_text(PROGRAM)
    rows = [
        {"ts": f"2026-03-01T00:00:{second:02}Z", "seq": 2 * second + place, "symbol": symbol, "price": prices[second]}
        for second in range(6)
        for place, (symbol, prices) in enumerate(PRICES.items())
    ]
    # One row more, so that the time of all others has passed.
    rows.append({"ts": "2026-03-01T00:01:00Z", "seq": 99, "symbol": "ZZ", "price": 10})
    (tmp_path / "trades" / "rows.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stderr
    told, calls = json.loads(run.stdout.rpartition("told ")[2])
    # AB: 10 12 16 rises by 6, then 4 falls, then 4 5 6 rises by 2. CD: 20 21 22 by 2, then 30 40 alone is no match.
    assert told == [["Crash", "AB", 4.0, 0], ["Crash", "CD", 1.0, 1], ["Steep", "AB", 6.0, 0, 2]]
    assert calls == len(rows) - 1
    assert [json.loads(line)["rule"] for line in (tmp_path / "steep" / "AB.jsonl").read_text().splitlines()] == [
        "Steep"
    ]
