"""Where the stages are wired together: from a path to what was checked and planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from estream.content import read_content
from estream.errors import EStreamError, Problem
from estream.plan.build import build
from estream.plan.model import Plan
from estream.spec.check import check
from estream.spec.checked import Checked
from estream.spec.reader import Read, read_ceq


@dataclass(frozen=True, slots=True)
class Loaded:
    """A CEQ file as far as it could be understood, and everything that is wrong with it."""

    read: Read
    checked: Checked | None
    plan: Plan | None
    problems: tuple[Problem, ...]

    @property
    def sources(self) -> Mapping[str, Sequence[str]]:
        """The lines of every file that was read."""
        return self.read.sources

    @property
    def is_wrong(self) -> bool:
        """Whether there is an error, so that nothing may be started."""
        return any(problem.severity == "error" for problem in self.problems)


def load(path: Path, environment: Mapping[str, str], root: Path | None = None) -> Loaded:
    """Read, check and plan a CEQ file; `root` is the folder that includes may not leave.

    The right parts of a wrong file are planned too, so that a user sees all problems at once; but there is no plan.
    """
    read = read_ceq(path, root or project_root(path), environment)
    if read.ceq is None:
        return Loaded(read, None, None, read.problems)
    checked, found = check(read)
    problems = (*read.problems, *found)
    wrong = any(problem.severity == "error" for problem in problems)
    # A rule that is wrong does not ask for its event, which is planned nevertheless.
    plan, found = build(checked, checked.events if wrong else ())
    problems = tuple(sorted((*problems, *found), key=lambda problem: problem.place))
    return Loaded(read, checked, None if wrong else plan, problems)


def ask_spark(loaded: Loaded) -> Loaded:
    """The same file, with what Spark itself says of its SQL queries."""
    if loaded.checked is None:
        return loaded
    from estream.stream.analyze import analyze, local_session

    return replace(loaded, problems=(*loaded.problems, *analyze(loaded.checked, local_session())))


def project_root(path: Path) -> Path:
    """The folder a CEQ file belongs to: where the program was started if the file is below it, else its own."""
    here = Path.cwd()
    return here if path.resolve().is_relative_to(here.resolve()) else path.resolve().parent


def require_readable(path: Path) -> None:
    """Refuse what is no file that can be read, in one line."""
    if path.is_dir():
        raise EStreamError(f"{path}: this is a folder; name a CEQ file in it")
    try:
        read_content(path, 0)
    except ValueError as error:
        raise EStreamError(f"{path}: {error}") from None
