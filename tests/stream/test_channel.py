"""Channels: nothing lost, nothing twice, whatever the writers do and wherever they die."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from estream.errors import EStreamError
from estream.stream.channel import Channel
from estream.stream.channel_retention import Retention
from estream.stream.channel_schema import arrow_schema, parse_columns
from estream.stream.channel_segment import Segment

DAY = 86_400_000_000


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": pa.array(values, pa.int64())})


def rows(channel: Channel, start: int = 0, limit: int | None = None) -> list[int]:
    return [value for block in channel.read(start, limit) for value in block.rows["n"].to_pylist()]


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel(tmp_path / "numbers").create(arrow_schema({"n": "bigint"}))


def test_rows_are_numbered_in_the_order_of_appends(channel: Channel) -> None:
    assert [channel.append(numbers(10, 11)), channel.append(numbers(12)), channel.append(numbers(13, 14))] == [0, 2, 3]
    assert rows(channel) == [10, 11, 12, 13, 14]
    assert (channel.first(), channel.latest()) == (0, 5)


def test_a_reader_takes_as_many_rows_as_it_asks_for(channel: Channel) -> None:
    channel.append(numbers(10, 11, 12))
    channel.append(numbers(13, 14))
    assert (channel.latest(1, 3), channel.latest(4, 100), channel.latest(5, 1)) == (4, 5, 5)
    assert rows(channel, 1, 3) == [11, 12, 13]
    assert [block.offset for block in channel.read(1, 3)] == [1, 3]
    assert rows(channel, 5) == []


def test_a_block_carries_its_writers_watermark_also_without_rows(channel: Channel) -> None:
    channel.append(numbers(10), watermark=7)
    channel.append(numbers(), watermark=9)
    channel.append(numbers(11))
    assert [(block.offset, block.end, block.watermark) for block in channel.read()] == [
        (0, 1, 7),
        (1, 2, 9),
        (2, 3, None),
    ]
    assert rows(channel) == [10, 11]


def test_a_repeated_append_of_a_named_writer_is_added_once(channel: Channel) -> None:
    small = Channel(channel.path, segment_blocks=2)
    for version in (0, 1, 1, 0, 2, 3, 4, 4):
        small.append(numbers(version), writer="query", version=version)
    assert small.append(numbers(9), writer="another", version=0) == 5
    assert rows(small) == [0, 1, 2, 3, 4, 9]


def test_a_row_without_a_time_gets_that_of_its_append_and_times_go_up(tmp_path: Path) -> None:
    ticks = iter([100, 90, 300])
    channel = Channel(tmp_path / "raised", clock=lambda: next(ticks))
    channel.create(parse_columns("ts timestamp, n bigint"), time="ts")
    given_time = pa.table({"ts": pa.array([5], pa.timestamp("us", "UTC")), "n": [3]})
    for table in (numbers(1), numbers(2), given_time):
        channel.append(table)
    assert [block.rows["ts"].cast(pa.int64()).to_pylist() for block in channel.read()] == [[100], [101], [5]]


def test_the_first_append_makes_the_channel(tmp_path: Path) -> None:
    channel = Channel(tmp_path / "deep" / "new")
    with pytest.raises(EStreamError, match="there is no channel 'new'"):
        channel.latest()
    channel.append(numbers(1))
    assert Channel(channel.path).schema == arrow_schema({"n": "bigint"})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"m": [1]}, "channel 'numbers' has no column 'm'; it has n"),
        ({"n": ["x"]}, "channel 'numbers': column 'n' is bigint; a value of type string does not fit"),
        ({"n": [1.5]}, "channel 'numbers': column 'n' is bigint; a value of type double does not fit"),
    ],
)
def test_rows_that_do_not_fit_are_refused_whole(channel: Channel, table: dict[str, list[object]], message: str) -> None:
    with pytest.raises(EStreamError, match=message):
        channel.append(pa.table(table))
    assert channel.latest() == 0


def test_a_channel_without_a_row_takes_the_columns_of_its_writer(channel: Channel) -> None:
    early = Channel(channel.path)
    assert early.schema.names == ["n"]
    Channel(channel.path).create(arrow_schema({"n": "bigint", "m": "int"}))
    early.append(numbers(1))
    assert [block.rows.to_pylist() for block in channel.read()] == [[{"n": 1, "m": None}]]


def test_a_channel_that_is_there_with_other_columns_is_not_made_again(channel: Channel) -> None:
    channel.append(numbers(1))
    with pytest.raises(EStreamError, match="'n' is bigint, not string, it has no 'm'"):
        Channel(channel.path).create(arrow_schema({"n": "string", "m": "int"}))


# What a writer that dies leaves behind: bytes without a record, or a record that is not whole.


def test_what_a_dying_writer_left_is_not_read_and_is_overwritten(channel: Channel) -> None:
    channel.append(numbers(1, 2))
    segment = Segment(channel.path, 0)
    with segment.data.open("ab") as data, segment.index.open("ab") as index:
        data.write(b"half a block")
        index.write(os.urandom(100))
    assert rows(channel) == [1, 2]
    assert channel.append(numbers(3)) == 2
    assert rows(channel) == [1, 2, 3]


def test_a_damaged_block_is_told_and_not_read(channel: Channel) -> None:
    channel.append(numbers(1, 2))
    data = Segment(channel.path, 0).data
    data.write_bytes(data.read_bytes()[:-1] + b"?")
    with pytest.raises(OSError, match="the block at row 0 is damaged"):
        rows(channel)


@given(st.data())
@hypothesis_settings(max_examples=60)
def test_a_crash_at_any_byte_loses_only_the_append_that_was_under_way(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        channel = Channel(Path(folder) / "numbers", segment_blocks=3).create(arrow_schema({"n": "bigint"}))
        sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=8))
        before: list[int] = []
        for size in sizes[:-1]:
            before += range(len(before), len(before) + size)
            channel.append(numbers(*before[-size:]))
        files = {path: path.read_bytes() for path in channel.path.iterdir()}
        whole = [*before, *range(len(before), len(before) + sizes[-1])]
        channel.append(numbers(*whole[-sizes[-1] :]))
        _cut_somewhere(channel.path, files, data)
        assert rows(channel) in (before, whole)
        seen = rows(channel)
        channel.append(numbers(-1))
        assert rows(channel) == [*seen, -1]
        assert channel.latest() == len(seen) + 1


def _cut_somewhere(folder: Path, before: dict[Path, bytes], data: st.DataObject) -> None:
    """The files as they were at some point of the last append: blocks first, then the record, never the other way."""
    steps = [path for suffix in (".data", ".index") for path in sorted(folder.glob(f"*{suffix}"))]
    grown = [path for path in steps if path in before and path.read_bytes() != before[path]]
    if not grown:
        return
    path = grown[data.draw(st.integers(0, len(grown) - 1))]
    old, new = len(before[path]), len(path.read_bytes())
    os.truncate(path, data.draw(st.integers(old, new)))
    for later in grown[grown.index(path) + 1 :]:
        os.truncate(later, len(before[later]))


def _count_on(path: Path) -> None:
    """Appends the numbers that follow, one at a time, for ever."""
    channel = Channel(path, segment_blocks=5)
    number = channel.latest()
    while True:
        channel.append(numbers(number), writer="counter", version=number)
        number += 1


def test_a_writer_that_is_killed_and_started_again_loses_nothing_and_adds_nothing_twice(channel: Channel) -> None:
    spawn = multiprocessing.get_context("spawn")
    for _ in range(3):
        before = channel.latest()
        writer = spawn.Process(target=_count_on, args=(channel.path,))
        writer.start()
        while channel.latest() < before + 20:
            assert writer.is_alive()
        writer.kill()
        writer.join()
    channel.append(numbers(channel.latest()))
    assert rows(channel) == list(range(channel.latest()))


def _write_many(path: Path, writer: int, appends: int) -> None:
    channel = Channel(path, segment_blocks=7)
    for number in range(appends):
        channel.append(numbers(*(writer * 1_000_000 + number * 10 + place for place in range(number % 3 + 1))))


def test_writers_in_several_processes_lose_nothing_and_leave_no_gaps(channel: Channel) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_write_many, args=(channel.path, writer, 40)) for writer in range(3)]
    for process in writers:
        process.start()
    seen = list(_follow(channel, writers))
    assert [process.exitcode for process in writers] == [0, 0, 0]
    blocks = list(channel.read())
    assert [block.offset for block in blocks] == [0, *(block.end for block in blocks[:-1])]
    assert seen == rows(channel)
    wanted = {w * 1_000_000 + n * 10 + p for w in range(3) for n in range(40) for p in range(n % 3 + 1)}
    assert len(seen) == len(wanted)
    assert set(seen) == wanted


def _follow(channel: Channel, writers: list[multiprocessing.context.SpawnProcess]) -> Iterator[int]:
    """Reads along while the writers write."""
    position, over = 0, False
    while not over:
        over = all(process.exitcode is not None for process in writers)
        end = channel.latest()
        yield from rows(channel, position, end - position)
        position = end


# Retention.


def old_and_new(tmp_path: Path, retention: Retention) -> Channel:
    """Five segments of two blocks, one block a day, and the time is day 10."""
    for day in range(10):
        writer = Channel(tmp_path / "numbers", clock=lambda now=day * DAY: now, segment_blocks=2)
        writer.append(numbers(day))
    return Channel(writer.path, retention, clock=lambda: 10 * DAY, segment_blocks=2)


def test_old_segments_go_and_offsets_stay(tmp_path: Path) -> None:
    channel = old_and_new(tmp_path, Retention(age=5 * DAY))
    assert channel.prune() == 2
    assert (channel.first(), channel.latest(), rows(channel, 4)) == (4, 10, [4, 5, 6, 7, 8, 9])
    assert channel.append(numbers(10)) == 10
    with pytest.raises(EStreamError, match="rows 0 to 3 are gone"):
        rows(channel)


def test_segments_beyond_the_size_go(tmp_path: Path) -> None:
    channel = old_and_new(tmp_path, Retention(size=1))
    channel.prune()
    assert channel.first() == 8


def test_what_a_reader_still_needs_stays_until_it_has_been_away_too_long(tmp_path: Path) -> None:
    channel = old_and_new(tmp_path, Retention(age=3 * DAY, keep=8 * DAY))
    channel.readers.hold("slow", 1)
    channel.readers.hold("quick", 9)
    assert channel.backlog() == 9
    channel.prune()
    assert (channel.first(), channel.backlog()) == (2, 8)
    channel.readers.release("slow")
    channel.prune()
    assert (channel.first(), channel.backlog()) == (6, 1)


def test_a_quiet_channel_ages_too(tmp_path: Path) -> None:
    channel = old_and_new(tmp_path, Retention(age=DAY // 2))
    channel.prune()
    assert (channel.first(), channel.latest(), rows(channel, 10)) == (10, 10, [])
    assert channel.append(numbers(5)) == 10


def test_a_pruned_writer_is_still_known(tmp_path: Path) -> None:
    channel = Channel(
        tmp_path / "numbers", Retention(age=0), clock=iter(range(0, 10**9, 1000)).__next__, segment_blocks=1
    )
    for version in range(5):
        channel.append(numbers(version), writer="query", version=version)
    assert channel.first() >= 3
    assert channel.append(numbers(2), writer="query", version=2) == -1
