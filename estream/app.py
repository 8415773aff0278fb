"""Where the stages are wired together: from a path to what was checked and planned."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from estream.content import read_content
from estream.errors import EStreamError, Problem
from estream.plan.build import build
from estream.plan.model import Plan
from estream.settings import Settings, load_settings, settings_files
from estream.spec.check import check
from estream.spec.checked import Checked
from estream.spec.future import future_queries, is_relative, launched, span_of
from estream.spec.override import UNCHANGED, Overrides, override
from estream.spec.reader import Read, read_ceq
from estream.text import Text

if TYPE_CHECKING:
    from estream.stream.checkpoint import Changes
    from estream.stream.display import Board
    from estream.stream.runner import Job

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A CEQ file as far as it could be understood, and everything that is wrong with it."""

    read: Read
    checked: Checked | None
    plan: Plan | None
    problems: tuple[Problem, ...]
    file: Path = field(default=Path())

    @property
    def sources(self) -> Mapping[str, Sequence[str]]:
        """The lines of every file that was read."""
        return self.read.sources

    @property
    def is_wrong(self) -> bool:
        """Whether there is an error, so that nothing may be started."""
        return any(problem.severity == "error" for problem in self.problems)


def load(
    path: Path, environment: Mapping[str, str], root: Path | None = None, overrides: Overrides = UNCHANGED
) -> Loaded:
    """Read, check and plan a CEQ file; `root` is the folder that includes may not leave.

    The right parts of a wrong file are planned too, so that a user sees all problems at once; but there is no plan.
    """
    read = override(read_ceq(path, root or project_root(path), environment), overrides)
    if read.ceq is None:
        return Loaded(read, None, None, read.problems, path)
    checked, found = check(read)
    problems = (*read.problems, *found)
    wrong = any(problem.severity == "error" for problem in problems)
    # A rule that is wrong does not ask for its event, which is planned nevertheless.
    plan, found = build(checked, checked.events if wrong else ())
    problems = tuple(sorted((*problems, *found), key=lambda problem: problem.place))
    return Loaded(read, checked, None if wrong else plan, problems, path)


def ask_spark(loaded: Loaded) -> Loaded:
    """The same file, with what Spark itself says of its SQL queries."""
    if loaded.checked is None:
        return loaded
    from estream.stream.analyze import analyze, local_session

    return replace(loaded, problems=(*loaded.problems, *analyze(loaded.checked, local_session())))


def ask_imports(loaded: Loaded, root: Path, environment: Mapping[str, str]) -> Loaded:
    """The same file, with what is wrong with the callbacks of its rules; their modules are imported."""
    if loaded.checked is None:
        return loaded
    from estream.app_rules import check_imports

    settings = load_settings(settings_files(root), environment)
    return replace(loaded, problems=(*loaded.problems, *check_imports(loaded.checked, settings, root)))


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


def project_settings(loaded: Loaded, root: Path, environment: Mapping[str, str]) -> Settings:
    """The settings of the project, with those of the file over them."""
    settings = load_settings(settings_files(root), environment)
    own = loaded.checked.ceq.settings if loaded.checked is not None else Settings()
    for section in own.model_fields_set:
        given = getattr(own, section)
        changed = {key: getattr(given, key) for key in given.model_fields_set}
        settings = settings.model_copy(update={section: getattr(settings, section).model_copy(update=changed)})
    return settings


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line says of a run."""

    once: bool = False
    seconds: float | None = None
    is_shown: bool = False
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    checkpoint: Path | None = None


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What the command line says of a replay."""

    inputs: Mapping[str, Path]
    output: Path
    host: Literal["spark", "process"] = "spark"
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


def job_of(loaded: Loaded, root: Path, environment: Mapping[str, str], options: RunOptions) -> Job:
    """What a run of a right file is, and where it keeps what it needs."""
    from estream.stream.runner import Job

    if loaded.plan is None or loaded.checked is None:
        raise EStreamError(loaded.problems)
    settings = project_settings(loaded, root, environment)
    if options.master is not None:
        spark = settings.spark.model_copy(update={"master": Text(options.master)})
        settings = settings.model_copy(update={"spark": spark})
    checkpoint = options.checkpoint or root / settings.paths.checkpoints / loaded.plan.name
    return Job(loaded.plan, loaded.checked, settings, checkpoint, root / settings.paths.channels, options.once)


def run(
    loaded: Loaded,
    root: Path,
    environment: Mapping[str, str],
    options: RunOptions,
    out: TextIO,
    callbacks: Mapping[str, Sequence[Callable[..., Any]]] | None = None,
) -> Board:
    """Run a file live with its rules and give the figures of the run; `callbacks` were registered in code."""
    from estream.app_changes import Versions, read_overrides
    from estream.app_counts import counting
    from estream.app_futures import Futures
    from estream.stream.run import Stop, Way
    from estream.stream.run import run as run_job

    def job_from(file: Path, overrides: Overrides) -> Job:
        require_readable(file)
        return job_for(load(file, environment, root, overrides))

    def job_for(version: Loaded) -> Job:
        job = job_of(_observing(version, callbacks or {}), root, environment, options)
        return futures.job(job, _observed(version, callbacks or {}))

    stop = Stop()
    futures = Futures(root, stop.is_asked)
    job = job_for(loaded)
    overrides = read_overrides(job.checkpoint, loaded.file)
    if not overrides.is_empty:
        _log.warning("%s goes on as it was changed while it ran: %s", job.plan.name, overrides)
        job = job_from(loaded.file, overrides)
    folder = root / job.settings.paths.state / job.plan.name
    way = Way(out, options.is_shown, options.seconds)
    versions = Versions(job, root, loaded.file, job_from, callbacks or {}, futures.at_work, stop.is_asked)
    with counting(job, root, stop.is_asked) as watch:
        changing = None if options.once else versions
        return run_job(job, way, folder, options.conf, versions.takers, changing, watch, stop)


def _observing(loaded: Loaded, callbacks: Mapping[str, Sequence[Callable[..., Any]]]) -> Loaded:
    """The file with a plan that also detects what functions were registered on."""
    if not callbacks or loaded.checked is None or loaded.is_wrong:
        return loaded
    return replace(loaded, plan=build(loaded.checked, _observed(loaded, callbacks))[0])


def _observed(loaded: Loaded, callbacks: Mapping[str, Sequence[Callable[..., Any]]]) -> list[str]:
    """The events that functions were registered on."""
    rules = loaded.checked.rules if loaded.checked is not None else {}
    return [str(rules[name].spec.on) if name in rules else name for name in callbacks]


def changes(loaded: Loaded, root: Path, environment: Mapping[str, str], options: RunOptions) -> Changes:
    """What the file would change of its checkpoint."""
    from estream.app_futures import Futures
    from estream.stream.checkpoint import compare, manifest_of, read_manifest

    job = Futures(root).job(job_of(loaded, root, environment, options))
    return compare(read_manifest(job.checkpoint), manifest_of(job.plan, job.checked, job.settings.detection.shards))


def told(changes: Changes) -> Iterator[str]:
    """What a file would change of its checkpoint, in lines for people."""
    if changes.is_new:
        yield "There is no checkpoint yet: everything starts empty."
        return
    for word, events in (
        ("keeps its partial matches", changes.kept),
        ("starts empty", changes.empty),
        ("is dropped with its partial matches", changes.dropped),
    ):
        yield from (f"event {event} {word}" for event in events)
    yield from (f"query {query} begins anew" for query in changes.begun)
    yield from (f"cannot go on: {reason}" for reason in changes.refused)
    if changes.refused:
        yield "Undo the change, or start anew with another --checkpoint."


def replay(loaded: Loaded, root: Path, environment: Mapping[str, str], options: ReplayOptions) -> int:
    """Detect over bounded input and write all detections; gives how many there are."""
    from estream.stream.detected import joined
    from estream.stream.output import require_output, write_detections

    job = _launched(job_of(loaded, root, environment, RunOptions(master=options.master, conf=options.conf)))
    require_output(options.output)
    _require_inputs(job, options.inputs)
    if options.host == "process":
        from estream.stream.in_process import detect_in_process

        tables = list(detect_in_process(job.plan, job.checked, options.inputs, job.channels))
    else:
        from estream.stream.replay_job import replay_tables

        tables = replay_tables(job, options.inputs, options.conf, root / job.settings.paths.state / job.plan.name)
    detections = joined(tables)
    write_detections(options.output, job.plan, detections)
    return int(detections.num_rows)


def _launched(job: Job) -> Job:
    """The job of a replay, whose future queries see the rows of their spans."""
    written = future_queries(job.checked)
    relative = [text for query in written.values() for text in (query.start, query.stop) if text and is_relative(text)]
    if relative:
        said = "counts from when a run launches the query; write the time itself to replay it"
        raise EStreamError([text.problem(f"'{text.shown}' {said}") for text in relative])
    if not written:
        return job
    checked = launched(job.checked, {name: span_of(query, 0) for name, query in written.items()})
    return replace(job, checked=checked, plan=build(checked)[0])


def _require_inputs(job: Job, inputs: Mapping[str, Path]) -> None:
    """Every stream needs an input, and every input a stream."""
    names = [stream.name for stream in job.plan.streams]
    for name, path in inputs.items():
        if name not in names:
            raise EStreamError(f"--input {name}: there is no such stream; there are {', '.join(names)}")
        if not path.exists():
            raise EStreamError(f"--input {name}: {path}: there is no such file")
    for name in names:
        if name not in inputs:
            raise EStreamError(f"stream '{name}' has no input; give one: --input {name}=PATH")
