"""What a longer file costs to check grows with its length, no faster, whatever is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from estream.spec.check import check
from estream.spec.reader import Read, parse_ceq

STREAM = "streams: {V: {source: {format: rate}, schema: {ts: timestamp, n: int}, time: ts}}\n"
WRONG_STREAM = STREAM.replace("n: int", "größe: int")
SHORT = 400
MOST_GROWTH = 1.15


def names(line: Callable[[int], str], count: int) -> str:
    return "".join(f"  {line(number)}\n" for number in range(1, count))


FILES: dict[str, Callable[[int], str]] = {
    "right events": lambda size: STREAM + "events:\n" + names(lambda n: f"E{n}: {{on: V, mask: n > {n}}}", size),
    "events over a wrong stream": lambda size: (
        f"{WRONG_STREAM}events:\n  E0: {{on: V}}\n" + names(lambda n: f"E{n}: {{when: E{n - 1} ; E0}}", size)
    ),
    "masks over a wrong stream": lambda size: (
        f"{WRONG_STREAM}events:\n  E0: {{on: V}}\n"
        + names(lambda n: f"E{n}: {{when: E{n - 1} ; E0, mask: E0.n > 1}}", size)
    ),
    "queries over a wrong stream": lambda size: (
        f"{WRONG_STREAM}queries:\n  Q0: {{sql: SELECT * FROM V}}\n"
        + names(lambda n: f"Q{n}: {{sql: SELECT * FROM Q{n - 1}}}", size)
    ),
    "unknown keys": lambda size: "".join(f"key{n}: 1\n" for n in range(size)),
    "unknown keys of a part": lambda size: "streams:\n  V:\n" + "".join(f"    key{n}: 1\n" for n in range(size)),
    "keys that are there twice": lambda size: "".join(f"key{n}: 1\nkey{n}: 2\n" for n in range(size)),
}


def steps(text: str) -> int:
    """How many functions are called, in Python and below it, to read and check the text."""
    count = 0

    def take(frame: object, kind: str, argument: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(take)
    try:
        parsed = parse_ceq(text, "f.yaml", {})
        check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_the_steps_grow_with_the_file(file: Callable[[int], str]) -> None:
    steps(file(2))  # grammars are built once, for the first file
    short, longer, longest = (steps(file(size * SHORT)) for size in (1, 2, 3))
    assert longest - longer < MOST_GROWTH * (longer - short)
