"""What a file publishes is in its channels once, and another file reads it as a stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from estream.app import RunOptions, job_of
from estream.errors import EStreamError
from estream.stream.channel import Channel
from estream.stream.publish import open_publications
from tests.stream.project import calls, channel_rows, loaded, run_once, stamp, write_rows

GIVER = """\
version: 1
name: giver
settings: {{detection: {{shards: 2}}}}
streams:
  Calls:
    source: {{format: json, options: {{path: "{folder}/calls", maxFilesPerTrigger: 1}}}}
    schema: {{ts: timestamp, call: bigint, caller: int, area: string, seconds: double}}
    time: ts
    watermark: 10 seconds
queries:
  Long: {{sql: "SELECT ts, call, caller, seconds / 60 AS minutes FROM Calls WHERE seconds > 60", publish: long_calls}}
  Busy:
    sql: SELECT area, count(*) AS calls, window.end AS ts FROM Calls GROUP BY area, window(ts, '20 seconds')
    publish: busy
  Change:
    from: Calls
    modify: {{function: adiff, attributes: [seconds], partition_by: caller, keep: new}}
    publish: changes
events:
  Short: {{on: Calls, mask: seconds < 20, id: [call]}}
  Lengthy: {{on: Long, id: [call]}}
  Returned:
    when: Short ; Lengthy
    context: chronicle
    partition_by: caller
    within: 2 minutes
    publish: returned
"""
TAKER = """\
version: 1
name: taker
streams:
  Back:
    source: {channel: returned}
    schema: {end: timestamp, Short_call: bigint, Lengthy_call: bigint, Lengthy_caller: int}
    time: end
events:
  First: {on: Back, id: [Lengthy_call]}
  Again: {on: Back, id: [Lengthy_call]}
  Twice:
    when: First ; Again
    context: recent
    partition_by: Lengthy_caller
"""


def giver(folder: Path) -> Path:
    path = folder / "giver.yaml"
    path.write_text(GIVER.format(folder=folder))
    return path


def test_queries_and_events_are_in_their_channels_once_and_another_file_reads_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    everything = calls(120)
    write_rows(tmp_path / "calls", everything[:60], 20)
    path = giver(tmp_path)
    run_once(spark, path)
    write_rows(tmp_path / "calls", everything[60:], 20)
    _, found = run_once(spark, path)

    long = [row for row in everything if row["seconds"] > 60]
    assert sorted(row["call"] for row in channel_rows(tmp_path, "long_calls")) == [row["call"] for row in long]
    busy = channel_rows(tmp_path, "busy")
    assert len({(row["area"], row["ts"]) for row in busy}) == len(busy) > 0
    changes = channel_rows(tmp_path, "changes")
    assert len({row["call"] for row in changes}) == len(changes) > 0

    told = sorted((row["id"], row["Short_call"], row["Lengthy_call"]) for row in channel_rows(tmp_path, "returned"))
    assert told == sorted((one["id"], *(part["attributes"]["call"] for part in one["constituents"])) for one in found)
    assert told

    taker = tmp_path / "taker.yaml"
    taker.write_text(TAKER)
    board, twice = run_once(spark, taker)
    assert board.rows == {"Back": len(told)}
    assert {one["event"] for one in twice} >= {"Twice"}


def test_a_channel_with_other_columns_is_told_before_anything_starts(tmp_path: Path) -> None:
    write_rows(tmp_path / "calls", [{"ts": stamp(0)}], 1)
    job = job_of(loaded(giver(tmp_path)), tmp_path, {}, RunOptions())
    other = Channel(job.channels / "busy")
    other.append(pa.table({"x": [1]}))
    with pytest.raises(EStreamError, match="'Busy' cannot be published: channel 'busy' is there with other columns"):
        open_publications(job.plan, job.channels)
