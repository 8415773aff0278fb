"""State as segments: small saves, the same detections, other graphs, and clear words about what cannot be read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from estream.errors import EStreamError
from estream.event.segment_format import MARK, VERSION
from estream.event.segments import load, save
from estream.event.state import BUCKET
from tests.event.running import SECOND, Run, at, graph_of, ids

KEYED = {"E": {"when": "A ; B", "context": "chronicle", "partition_by": ["k"]}}
NESTED = {"X": {"when": "A ; B", "context": "continuous"}, "E": {"when": "X ; C", "context": "continuous"}}


def test_a_save_writes_what_changed_and_nothing_else() -> None:
    running = Run(graph_of(KEYED))
    first = [at("A1", number, k=number) for number in range(3 * BUCKET)]
    running.feed(first, watermark=2)
    everything = save(running.graph, running.state)
    assert len([name for name in everything.segments if name.startswith("node/")]) == 3
    running.feed([at("A2", 1, k=BUCKET + 5)], watermark=3)
    later = save(running.graph, running.state)
    assert {name.rsplit("/", 1)[1] for name in later.segments if name.startswith("node/")} == {"1"}
    assert {name.split("/")[0] for name in later.segments} == {"meta", "node", "rows"}
    assert max(len(data) for name, data in later.segments.items() if name.startswith("rows/")) < 5000
    assert save(running.graph, running.state).segments == {}


def test_what_is_no_longer_waiting_leaves_no_segment() -> None:
    running = Run(graph_of(KEYED))
    running.feed([at("A1", 1)], watermark=2)
    segments = save(running.graph, running.state).onto({})
    running.feed([at("B2", 2)], watermark=3)
    saved = save(running.graph, running.state)
    assert any(name.startswith("node/") for name in saved.removed)
    assert not any(name.startswith("node/") for name in saved.onto(segments))


def test_chunks_of_rows_do_not_pile_up() -> None:
    running, segments = Run(graph_of(KEYED)), dict[str, bytes]()
    for number in range(100):
        running.feed([at(f"A{number}", number, k=number % 7)], watermark=number + 1)
        segments = save(running.graph, running.state).onto(segments)
    assert len([name for name in segments if name.startswith("rows/")]) < 40
    running.state, _ = load(running.graph, segments)
    assert ids(running.feed([at("B200", 999, k=3)], watermark=201)) == [[3, 999]]


def test_rows_above_the_watermark_are_kept() -> None:
    running = Run(graph_of(KEYED))
    running.feed([at("A1", 1), at("B9", 2)], watermark=5)
    running.reload({})
    assert ids(running.feed([], watermark=10)) == [[1, 2]]


def test_a_new_graph_keeps_the_nodes_it_still_has_and_reports_the_others() -> None:
    running = Run(graph_of(NESTED | {"Old": {"when": "A ; C"}}))
    running.feed([at("A1", 1), at("B2", 2)], watermark=3)
    segments = save(running.graph, running.state).onto({})
    after = Run(graph_of(NESTED | {"New": {"when": "B ; C"}}))
    after.state, report = load(after.graph, segments)
    assert (report.dropped, report.new) == (("A ; C",), ("B ; C",))
    assert str(report) == "kept the state of 2 of 3 nodes; dropped what waited at A ; C; began B ; C"
    assert ids(after.feed([at("C4", 3)], watermark=5)) == [[1, 2, 3]]
    removed = save(after.graph, after.state).removed
    assert {name for name in segments if name.startswith("node/")} & removed


def test_a_key_that_changed_its_type_drops_what_waited() -> None:
    running = Run(graph_of(KEYED))
    running.feed([at("A1", 1)], watermark=2)
    segments = save(running.graph, running.state).onto({})
    after = Run(graph_of(KEYED, k="x"))
    after.state, report = load(after.graph, segments)
    assert report.dropped == ("A ; B",)
    assert ids(after.feed([at("B2", 2, k="1")], watermark=3)) == []


def test_an_attribute_that_was_not_kept_is_null() -> None:
    running = Run(graph_of(KEYED))
    running.feed([at("A1", 1)], watermark=2)
    segments = save(running.graph, running.state).onto({})
    after = Run(graph_of(KEYED, w=1))
    after.state, _ = load(after.graph, segments)
    (found,) = after.feed([at("B2", 2, w=5)], watermark=3).detections.to_pylist()
    assert [part["w"] for part in found["constituents"]] == [None, 5]


def test_text_keys_and_constants_mean_the_same_after_a_load() -> None:
    events = {"E": {"when": "A ; B", "partition_by": ["k"], "mask": "A.v = 'yes' and B.v <> A.v"}}
    running = Run(graph_of(events, k="", v=""))
    running.feed([at("A1", 1, k="x", v="yes"), at("A1", 2, k="y", v="no")], watermark=2)
    running.reload({})
    assert ids(running.feed([at("B2", 3, k="x", v="no"), at("B2", 4, k="y", v="z")], watermark=3)) == [[1, 3]]


def test_timers_go_on_after_a_load() -> None:
    running = Run(graph_of({"E": {"when": "P(A, 2 s, B)"}, "F": {"when": "absent(A, B, 5 s)"}}))
    running.feed([at("A1", 1)], watermark=4)
    running.reload({})
    found = running.feed([], watermark=8).detections.to_pylist()
    assert [(one["event"], one["end"] // SECOND) for one in found] == [("E", 5), ("E", 7), ("F", 6)]


def test_a_state_that_has_seen_nothing_can_be_saved() -> None:
    running = Run(graph_of(NESTED))
    running.reload({})
    assert ids(running.feed([at("A1", 1), at("B2", 2), at("C3", 3)], watermark=9))[-1] == [1, 2, 3]


def saved_state() -> tuple[Run, dict[str, bytes]]:
    running = Run(graph_of(KEYED))
    running.feed([at("A1", 1), at("A2", 2, k=2)], watermark=9)
    return running, save(running.graph, running.state).onto({})


def name_of(segments: dict[str, bytes], beginning: str) -> str:
    return next(name for name in segments if name.startswith(beginning))


@pytest.mark.parametrize("beginning", ["meta", "rows/", "node/"])
def test_damage_is_told(beginning: str) -> None:
    running, segments = saved_state()
    name = name_of(segments, beginning)
    data = bytearray(segments[name])
    data[len(data) // 2] ^= 1
    with pytest.raises(EStreamError, match=f"state segment '{name}' is damaged"):
        load(running.graph, segments | {name: bytes(data)})


def test_what_is_not_a_segment_is_told() -> None:
    running, segments = saved_state()
    with pytest.raises(EStreamError, match="state segment 'meta' was not written by EStream"):
        load(running.graph, segments | {"meta": b"\x80\x04K\x01."})


def test_a_newer_version_is_told() -> None:
    running, segments = saved_state()
    newer = MARK + (VERSION + 1).to_bytes(4, "little") + segments["meta"][12:]
    with pytest.raises(EStreamError, match=f"has version {VERSION + 1}, this EStream reads up to {VERSION}"):
        load(running.graph, segments | {"meta": newer})


@pytest.mark.parametrize("beginning", ["meta", "rows/", "node/"])
def test_a_lost_segment_is_told(beginning: str) -> None:
    running, segments = saved_state()
    del segments[name_of(segments, beginning)]
    with pytest.raises(EStreamError, match="the state has no segment"):
        load(running.graph, segments)


def test_another_process_goes_on_with_the_state(tmp_path: Path) -> None:
    _, segments = saved_state()
    for number, (name, data) in enumerate(segments.items()):
        (tmp_path / str(number)).write_bytes(name.encode() + b"\0" + data)
    program = f"""
from pathlib import Path
from estream.event.segments import load
from tests.event.running import Run, at, graph_of, ids
segments = dict(part.read_bytes().split(b"\\0", 1) for part in Path({str(tmp_path)!r}).iterdir())
running = Run(graph_of({KEYED!r}))
running.state, _ = load(running.graph, {{name.decode(): data for name, data in segments.items()}})
print(ids(running.feed([at("B9", 3), at("B9", 4, k=2)], watermark=10)))
"""
    root = Path(__file__).parent.parent.parent
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[[1, 3], [2, 4]]\n", "")


def test_saving_twice_and_loading_give_the_same_detections_with_the_same_ids() -> None:
    def detected(reload: bool) -> list[int]:
        running, segments, found = Run(graph_of(NESTED)), dict[str, bytes](), list[int]()
        for number in range(1, 40):
            rows = [at(f"{'ABC'[number % 3]}{number}", number)]
            found += running.feed(rows, watermark=number).detections["id"].to_pylist()
            segments = running.reload(segments) if reload else segments
        return found

    assert detected(reload=True) == detected(reload=False) != []
