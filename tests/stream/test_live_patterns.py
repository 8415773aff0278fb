"""Patterns in a live run on Spark find what they find in process; posts are read from their raw text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from estream.stream.detected import instant
from estream.testing import Row, match
from tests.stream.project import BEGIN, run_once, stamp, write_rows

ROOT = Path(__file__).parent.parent.parent
PATTERN = ". up+ down"
DEFINE = {"up": "price > last(price)", "down": "price < first(price)"}
OUTPUT = {"symbol": "symbol", "top": "max(price)", "seqs": "collect(seq)"}
CEQ = f"""\
version: 1
name: shapes
settings: {{{{detection: {{{{shards: 2}}}}}}}}
streams:
  Trades:
    source: {{{{format: json, options: {{{{path: "{{folder}}/trades", maxFilesPerTrigger: 1}}}}}}}}
    schema: {{{{ts: timestamp, seq: bigint, symbol: string, price: double}}}}
    time: ts
    watermark: 10 seconds
events:
  Peak:
    on: Trades
    id: [seq]
    partition_by: symbol
    within: 1 minute
    pattern: {PATTERN}
    define: {{define}}
    output: {{output}}
rules:
  Tell: {{{{on: Peak, actions: [{{{{log: "{{{{Peak.symbol}}}} {{{{Peak.top}}}} {{{{Peak.seqs}}}}"}}}}]}}}}
"""


def trades(count: int) -> list[dict[str, Any]]:
    """Trades of three symbols, one a second, each four in another order than that of their times."""
    rows = [
        {"ts": stamp(at), "seq": at, "symbol": "ABC"[at * 7 % 3], "price": float(at * 37 % 11)} for at in range(count)
    ]
    return [rows[at ^ 3] for at in range(count)]


def in_process(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    begin = int(BEGIN.timestamp()) * 1_000_000
    given = [Row("Trades", begin + row["seq"] * 1_000_000, row["seq"], row) for row in rows]
    plain = [Row(row.event, row.time, row.id, {**row.attributes, "ts": row.time}) for row in given]
    found = match(PATTERN, define=DEFINE, rows=plain, output=OUTPUT, partition_by=["symbol"], within="1 min")
    return [{"start": instant(one.start), "end": instant(one.end), **one.attributes} for one in found]


def test_matches_of_a_live_run_are_those_in_process(spark: SparkSession, tmp_path: Path) -> None:
    rows = trades(120)
    write_rows(tmp_path / "trades", rows, 40)
    path = tmp_path / "shapes.yaml"
    path.write_text(CEQ.format(folder=tmp_path, define=DEFINE, output=OUTPUT))
    board, found = run_once(spark, path)
    live = [{"start": one["start"], "end": one["end"], **one["constituents"][0]["attributes"]} for one in found]
    ended = [one for one in in_process(rows) if one["end"] < instant(board.watermark)]
    assert board.late == 0
    assert len(ended) > 5
    assert sorted(live, key=str) == sorted(ended, key=str)


def test_every_post_is_read_from_its_raw_text(spark: SparkSession, tmp_path: Path) -> None:
    raw = [f"<post><name>Ann{at}</name><title>Day {at}</title></post>" for at in range(4)]
    posts = [{"ts": stamp(20 * at), "post_id": at, "raw": text} for at, text in enumerate([*raw, "no post at all"])]
    write_rows(tmp_path / "raw", [*posts, {"ts": stamp(200), "post_id": 9, "raw": ""}], 3)
    path = tmp_path / "posts.yaml"
    spec = (ROOT / "ceq_specs" / "social" / "posts.yaml").read_text()
    spec = spec.replace("${POSTS:-data/raw_posts}", str(tmp_path / "raw"))
    path.write_text(spec)
    _, found = run_once(spark, path)
    read = [one["constituents"][0]["attributes"] for one in found]
    assert sorted(read, key=str) == [{"author": f"Ann{at}", "post_id": at, "content": f"Day {at}"} for at in range(4)]
