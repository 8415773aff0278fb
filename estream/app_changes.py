"""The versions of a file while it runs: what a request asks for, the rules of each, and the record of it all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from estream.app_rules import rules_at_work
from estream.errors import EStreamError
from estream.history.changes import record_change
from estream.history.database import Database
from estream.rule.registry import Callback
from estream.rule.store import StoreAway, StoreStopped
from estream.spec.override import Overrides
from estream.stream.change import Answer, Request
from estream.stream.change_live import Takers, no_takers
from estream.stream.runner import Job
from estream.stream.sink import Take, write_whole

OVERRIDES = "overrides.json"


@dataclass(slots=True)
class Versions:
    """Gives the job of each version, from the file and what was changed beside it."""

    job: Job
    root: Path
    file: Path
    job_from: Callable[[Path, Overrides], Job]
    """The job of a file with overrides; EStreamError tells what is wrong with it."""
    callbacks: Mapping[str, Sequence[Callback]] = field(default_factory=dict)
    """Functions that were registered in code."""
    futures: Takers = no_takers
    """The future queries of a version at work."""
    is_stopping: Callable[[], bool] = lambda: False
    """Whether the run is to end: then a history that is away is not waited for."""
    _asked: tuple[Path, Overrides] | None = None

    def propose(self, request: Request) -> Job:
        """See `Changing.propose`."""
        if request.kind == "apply":
            file, overrides = Path(request.file or ""), Overrides()
        else:
            file, overrides = self.file, read_overrides(self.job.checkpoint, self.file)
            if request.kind == "mask":
                overrides = overrides.with_mask(request.name or "", request.mask)
            else:
                overrides = overrides.with_rule(request.name or "", bool(request.enabled))
        self._asked = file, overrides
        return self.job_from(file, overrides)

    def done(self, request: Request, answer: Answer) -> None:
        """See `Changing.done`."""
        if self._asked is None:
            return
        self.file, overrides = self._asked
        write_overrides(self.job.checkpoint, self.file, overrides)
        database = Database(self.job.settings.history.url, self.root)
        try:
            database.upgrade()
            record_change(database, self.job.plan.name, request, answer)
        except (StoreAway, StoreStopped) as error:
            raise EStreamError(str(error)) from None
        finally:
            database.close()

    @contextmanager
    def takers(self, job: Job) -> Iterator[tuple[Take, ...]]:
        """The rules of a version at work."""
        with ExitStack() as opened:
            takes = opened.enter_context(self.futures(job))
            if job.plan.rules or self.callbacks:
                rules = rules_at_work(
                    job.checked, job.plan, job.settings, self.root, job.channels, self.callbacks, self.is_stopping
                )
                takes = (*takes, opened.enter_context(rules).take)
            yield takes


def read_overrides(checkpoint: Path, file: Path) -> Overrides:
    """What was changed beside the file while it ran; nothing if the file has changed since: then it counts."""
    try:
        facts = json.loads((checkpoint / OVERRIDES).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Overrides()
    if facts.pop("file") != _digest(file):
        return Overrides()
    return Overrides(**facts)


def write_overrides(checkpoint: Path, file: Path, overrides: Overrides) -> None:
    """Keep what was changed beside the file."""
    if overrides.is_empty:
        (checkpoint / OVERRIDES).unlink(missing_ok=True)
    else:
        facts = {"file": _digest(file), **asdict(overrides)}
        write_whole(checkpoint / OVERRIDES, json.dumps(facts, indent=2).encode())


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
