"""Changes of a run while it goes on: requests and answers as files beside its checkpoint.

A request is there whole or not at all, and so is its answer. Who runs holds a lock, by which others see that it runs.
"""

from __future__ import annotations

import fcntl
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO

from estream.errors import EStreamError
from estream.stream.sink import write_whole

FOLDER = "changes"
PATIENCE = 300.0
"""Seconds to wait for an answer: a change waits for the micro-batch under way."""
_LOOK = 0.05


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a run: another version of its file, another mask of an event, a rule enabled or disabled."""

    kind: Literal["apply", "mask", "rule"]
    by: str
    """Who asks."""
    file: str | None = None
    name: str | None = None
    mask: str | None = None
    enabled: bool | None = None

    @property
    def text(self) -> str:
        """The request in one line, for people and for the history."""
        if self.kind == "apply":
            return f"apply {self.file}"
        if self.kind == "rule":
            return f"rule {'enable' if self.enabled else 'disable'} {self.name}"
        return f"mask {self.name} {'--clear' if self.mask is None else json.dumps(self.mask)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request."""

    accepted: bool
    told: tuple[str, ...] = ()
    """What changed, or why it was refused, in lines."""
    restarted: bool = False
    """Whether the query was started anew on its checkpoint."""
    batch: int | None = None
    """The first micro-batch of the new version."""
    watermark: int | None = None
    """The watermark that the old version had reached."""
    kept: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()


NOT_UNDERSTOOD = Answer(False, ("the request is not understood; ask with the EStream that runs the file",))


@dataclass(slots=True)
class Desk:
    """Where a run takes requests, in the folder of its checkpoint."""

    folder: Path
    _lock: TextIO | None = field(default=None, init=False)

    def open(self) -> None:
        """Say that the run is there; EStreamError if another one has the same checkpoint."""
        self._path.mkdir(parents=True, exist_ok=True)
        lock = (self._path / "lock").open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise EStreamError(
                f"{self.folder.name} runs already with the checkpoint {self.folder}; "
                "change it with `estream apply`, or start another with --checkpoint"
            ) from None
        for left in self._path.glob("*.json"):
            left.unlink()
        self._lock = lock

    def close(self) -> None:
        """Say that the run is over."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def pending(self) -> Iterator[tuple[str, Request]]:
        """The requests that have no answer yet, in the order they came, each with its number."""
        for path in sorted(self._path.glob("*.request.json")):
            number = path.name.partition(".")[0]
            if self._answer(number).exists():
                continue
            try:
                request = Request(**json.loads(path.read_text(encoding="utf-8")))
            except FileNotFoundError:
                continue
            except (ValueError, TypeError):
                self.answer(number, NOT_UNDERSTOOD)
            else:
                yield number, request

    def answer(self, number: str, answer: Answer) -> None:
        """Answer a request."""
        write_whole(self._answer(number), json.dumps(asdict(answer)).encode())

    @property
    def is_open(self) -> bool:
        """Whether a run takes requests here."""
        if not (self._path / "lock").exists():
            return False
        with (self._path / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return True
        return False

    def ask(self, request: Request, patience: float = PATIENCE) -> Answer:
        """Hand a request to the run and wait for its answer; EStreamError if there is no run, or it ends meanwhile."""
        if not self.is_open:
            raise EStreamError(f"{self.folder.name} does not run; start it with `estream run`")
        number = f"{time.time_ns():020}-{uuid.uuid4().hex[:8]}"
        asked = self._path / f"{number}.request.json"
        write_whole(asked, json.dumps(asdict(request)).encode())
        try:
            return self._wait(number, time.monotonic() + patience)
        finally:
            asked.unlink(missing_ok=True)
            self._answer(number).unlink(missing_ok=True)

    def _wait(self, number: str, until: float) -> Answer:
        while not self._answer(number).exists():
            if not self.is_open:
                raise EStreamError(f"{self.folder.name} ended before it answered")
            if time.monotonic() > until:
                raise EStreamError(f"{self.folder.name} did not answer in time; its micro-batches may take very long")
            time.sleep(_LOOK)
        facts: dict[str, Any] = json.loads(self._answer(number).read_text(encoding="utf-8"))
        lists: dict[str, Any] = {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
        return Answer(**facts | lists)

    def _answer(self, number: str) -> Path:
        return self._path / f"{number}.answer.json"

    @property
    def _path(self) -> Path:
        return self.folder / FOLDER


@contextmanager
def desk_of(checkpoint: Path) -> Iterator[Desk]:
    """The desk of a run, open while it goes on."""
    desk = Desk(checkpoint)
    desk.open()
    try:
        yield desk
    finally:
        desk.close()


def running(checkpoints: Path) -> list[Desk]:
    """The desks of the runs that go on, of the checkpoints in a folder."""
    desks = [Desk(path.parent) for path in sorted(checkpoints.glob(f"*/{FOLDER}"))]
    return [desk for desk in desks if desk.is_open]
