"""The command line: what a CEQ file goes through, from `init` to `replay`; other commands are added at the end."""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn, TextIO

import typer

from estream import __version__, cli_changes, cli_history
from estream.cli_help import MACHINE, RUN, WRITE, Sections
from estream.errors import EStreamError, Problem
from estream.report import printable, render, summary, to_json

if TYPE_CHECKING:
    from estream.app import Loaded, RunOptions
    from estream.doctor import Finding

WARNED, FAILED, WRONG, BUG = 1, 1, 2, 70
"""Exit statuses: warnings under --strict, vectors that failed, errors, a mistake of EStream itself."""

DEBUG = "ESTREAM_DEBUG"
"""The variable that asks for the traceback of a mistake of EStream itself."""

# The paragraphs of a command's help are kept as they are written: the examples are lines of their own.
cli = typer.Typer(
    name="estream",
    cls=Sections,
    help="Continuous queries over streams, event detection and rules in one system.\n\n"
    "Try it:\n\n    estream init my_project\n\n"
    "`estream COMMAND --help` says more, with an example.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

MasterOption = Annotated[str | None, typer.Option("--master", metavar="URL", help="Where Spark runs.")]
ConfOption = Annotated[list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Configuration of Spark.")]
CheckpointOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where the state is kept; by default under paths.checkpoints.")
]
CeqFile = Annotated[Path, typer.Argument(metavar="FILE", help="A CEQ file.", show_default=False)]


def main() -> None:
    """Run the program; a user's mistake ends in a message, never in a traceback."""
    try:
        cli(prog_name="estream")
    except EStreamError as error:
        _fail(error)
    except OSError as error:
        # What is still in the buffer cannot be written either: Python must not try it again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(EStreamError(f"{error.filename or 'the output'}: {error.strerror}"))
    except Exception as error:
        if _is_interrupted(error):
            raise KeyboardInterrupt from None
        if os.environ.get(DEBUG):
            raise
        typer.echo(_bug(error), err=True)
        sys.exit(BUG)


def _is_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is what began it: some imports turn the exception into another."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _bug(error: Exception) -> str:
    """What to say of a mistake of ours: where, but not its words, which may hold what is secret."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    at = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
    return f"This is a bug in EStream, not in your file ({at}). Please report it with what --debug shows."


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"estream {__version__}")
        raise typer.Exit


@cli.callback()
def estream(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar=DEBUG, help="Show the traceback if EStream itself fails.")
    ] = False,
) -> None:
    """Options of the program as a whole."""
    if debug:
        os.environ[DEBUG] = "1"


@cli.command(rich_help_panel=WRITE, short_help="Say everything that is wrong with CEQ files.")
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="CEQ files.", show_default=False)],
    format: Annotated[Literal["text", "json"], typer.Option(help="Text for people, JSON for programs.")] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if there are warnings.")] = False,
    spark: Annotated[bool, typer.Option("--spark", help="Start Spark and ask it about the SQL queries too.")] = False,
    imports: Annotated[bool, typer.Option("--imports", help="Import the callbacks of rules and look at them.")] = False,
) -> None:
    """Say everything that is wrong with CEQ files, each problem at its place.

    Exit status: 0 right, 1 warnings with --strict, 2 wrong.

    Example:

        estream check ceq_specs/car_adn.yaml
    """
    loaded = [_load(file, spark, imports) for file in files]
    problems = [problem for each in loaded for problem in each.problems]
    if format == "json":
        typer.echo(to_json(problems))
    else:
        typer.echo(render(problems, _sources(loaded), _color(sys.stdout)), nl=False)
        typer.echo(f"{_files(files)}: {summary(problems)}")
    raise typer.Exit(_status(problems, strict))


@cli.command(rich_help_panel=WRITE, short_help="Show what will run, as text or as a graph.")
def explain(
    file: CeqFile,
    format: Annotated[
        Literal["text", "json", "dot", "mermaid"], typer.Option(help="A tree, JSON, or a graph to draw.")
    ] = "text",
    select: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Only this part; `NAME+`: and what depends on it, `+NAME`: and what it needs."
        ),
    ] = None,
) -> None:
    """Show what will run: streams, queries, the tree of events, rules by priority.

    Example:

        estream explain ceq_specs/car_adn.yaml --select EAccident+
    """
    loaded = _load(file)
    typer.echo(render(loaded.problems, loaded.sources, _color(sys.stderr)), nl=False, err=True)
    if loaded.is_wrong or loaded.plan is None:
        raise typer.Exit(WRONG)
    from estream.plan.explain import explain as explain_plan

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    typer.echo(explain_plan(loaded.plan, format, select, width, _color(sys.stdout)).rstrip("\n"))


@cli.command(rich_help_panel=RUN)
def emit(
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="The channel's name.", show_default=False)],
    row: Annotated[
        str | None,
        typer.Argument(metavar="JSON", help="One row; without it, rows are read from the input, one a line."),
    ] = None,
    schema: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Make the channel: 'ts timestamp, n int'.")
    ] = None,
) -> None:
    """Append rows to a channel, all or none.

    Example:

        estream emit readings '{"patient": 7, "temperature": 39.5}'
    """
    from estream.stream.channel_emit import emit_json, find_channel, project_channels

    lines, file = (sys.stdin, "<stdin>") if row is None else ([row], "<argument>")
    count = emit_json(find_channel(project_channels(os.environ), channel, schema), lines, file)
    typer.echo(f"{channel}: {_counted(count, 'row')}")


@cli.command(rich_help_panel=WRITE, short_help="Print the JSON Schema of CEQ files.")
def schema() -> None:
    """Print the JSON Schema of CEQ files, which gives editors completion.

    Example:

        estream schema > ceq.schema.json
    """
    import json

    from estream.spec.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))


@cli.command(rich_help_panel=WRITE)
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.", show_default=False)],
) -> None:
    """Make a small project that passes `estream check`.

    Example:

        estream init my_project
    """
    from estream.init import create

    for path in create(folder):
        typer.echo(f"made {path}")
    typer.echo(f"\nTry it:\n    cd {folder}\n    estream check ceq_specs/fever.yaml")


@cli.command(rich_help_panel=MACHINE, short_help="Say whether EStream can run on this machine.")
def doctor(
    format: Annotated[Literal["text", "json"], typer.Option(help="Text for people, JSON for programs.")] = "text",
) -> None:
    """Look at Java, Python, Spark, memory, folders and libraries, and say what to do about each.

    Exit status: 0 if EStream can run here, else 2.

    Example:

        estream doctor
    """
    from estream.doctor import examine
    from estream.settings import load_settings, settings_files

    paths = load_settings(settings_files(Path()), os.environ).paths
    folders = {f"paths.{name}": Path(getattr(paths, name)) for name in ("state", "checkpoints", "channels", "cache")}
    findings = examine(folders, os.environ)
    if format == "json":
        import dataclasses
        import json

        typer.echo(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            typer.echo(_finding(finding, _color(sys.stdout)))
    raise typer.Exit(WRONG if any(finding.status == "fail" for finding in findings) else 0)


@cli.command(rich_help_panel=MACHINE, short_help="Run conformance vectors.")
def conformance(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files of vectors.", show_default=False)],
    split: Annotated[int, typer.Option(metavar="K", min=1, help="Cut each input into K random batches.")] = 1,
    shuffle: Annotated[
        int | None, typer.Option(metavar="SEED", help="Shuffle each input as far as the watermark allows it.")
    ] = None,
    host: Annotated[
        Literal["process", "spark"], typer.Option(help="Without Spark, or many cases in one Spark job.")
    ] = "process",
    format: Annotated[Literal["text", "json"], typer.Option(help="Text for people, JSON for programs.")] = "text",
) -> None:
    """Run conformance vectors; the state becomes bytes and is read back between batches.

    Exit status: 0 if all passed, 1 if one failed, 2 if a file is wrong.

    Example:

        estream conformance tests/conformance/patterns.jsonl --split 4
    """
    from estream.conformance import in_process, run_files
    from estream.testing import Cuts

    if host == "spark":
        if split > 1 or shuffle is not None:
            raise EStreamError("--split and --shuffle go with --host process: Spark cuts the input by itself")
        from estream.conformance_spark import on_spark

        outcome = run_files(files, on_spark(os.environ))
    else:
        outcome = run_files(files, in_process(Cuts(split, shuffle)))
    typer.echo(outcome.to_json() if format == "json" else str(outcome))
    raise typer.Exit(FAILED if outcome.failures else 0)


@cli.command(rich_help_panel=RUN, short_help="Run a CEQ file live on Spark.")
def run(
    file: CeqFile,
    once: Annotated[bool, typer.Option("--once", help="Take what is there and end; timers stay pending.")] = False,
    duration: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="End so long after the first micro-batch, like 60s.")
    ] = None,
    format: Annotated[
        Literal["text", "json"] | None, typer.Option(help="A display, or a line for each detection.")
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    checkpoint: CheckpointOption = None,
) -> None:
    """Run a CEQ file live on Spark; Ctrl-C or SIGTERM ends it after the micro-batch under way.

    On a terminal it shows streams, events and the latest detections; else it writes each detection as a line of JSON.
    Started again, it goes on where it ended.

    Example:

        estream run ceq_specs/car_adn.yaml --for 60s
    """
    loaded = _right(file)
    is_shown = sys.stdout.isatty() if format is None else format == "text"
    options = _run_options(once, duration, is_shown, master, conf, checkpoint)
    from estream import app

    board = app.run(loaded, app.project_root(file), os.environ, options, sys.stdout)
    found = sum(board.detected.values())
    rows = _counted(sum(board.rows.values()), "row")
    typer.echo(f"{file}: {rows}, {_counted(found, 'detection')}, {board.late:,} late", err=True)


@cli.command(rich_help_panel=RUN, short_help="Say what a run would keep of its checkpoint.")
def plan(
    file: CeqFile,
    format: Annotated[Literal["text", "json"], typer.Option(help="Text for people, JSON for programs.")] = "text",
    checkpoint: CheckpointOption = None,
) -> None:
    """Say what a run would keep of its checkpoint, what starts empty, and what cannot be changed in place.

    Exit status: 0 if it can go on from the checkpoint, else 2.

    Example:

        estream plan ceq_specs/car_adn.yaml
    """
    import dataclasses
    import json

    from estream import app

    options = _run_options(False, None, False, None, None, checkpoint)
    changes = app.changes(_right(file), app.project_root(file), os.environ, options)
    if format == "json":
        typer.echo(json.dumps(dataclasses.asdict(changes), indent=2))
    else:
        typer.echo("\n".join(app.told(changes)))
    raise typer.Exit(WRONG if changes.refused else 0)


@cli.command(rich_help_panel=RUN, short_help="Detect over rows that are there already.")
def replay(
    file: CeqFile,
    input: Annotated[
        list[str], typer.Option("--input", metavar="STREAM=PATH", help="A file or folder for each stream.")
    ],
    output: Annotated[Path, typer.Option(metavar="PATH", help="Where detections go: .jsonl or .parquet.")],
    host: Annotated[
        Literal["spark", "process"], typer.Option(help="Spark, or without it where no query needs SQL.")
    ] = "spark",
    master: MasterOption = None,
    conf: ConfOption = None,
) -> None:
    """Detect over rows that are there already: the same plan as a batch job, with the same detections.

    Example:

        estream replay fever.yaml --input Readings=may.json --output may.jsonl
    """
    from estream import app

    inputs = {}
    for pair in input:
        name, equals, path = pair.partition("=")
        if not (name and equals and path):
            raise EStreamError(f"--input takes STREAM=PATH, not '{pair}'")
        inputs[name] = Path(path)
    options = _run_options(False, None, False, master, conf, None)
    found = app.replay(
        _right(file),
        app.project_root(file),
        os.environ,
        app.ReplayOptions(inputs, output, host, options.master, options.conf),
    )
    typer.echo(f"{output}: {_counted(found, 'detection')}", err=True)


def _right(file: Path) -> Loaded:
    """A file that can be run; else its problems are told and the program ends."""
    loaded = _load(file)
    typer.echo(render(loaded.problems, loaded.sources, _color(sys.stderr)), nl=False, err=True)
    if loaded.is_wrong:
        raise typer.Exit(WRONG)
    return loaded


def _run_options(
    once: bool,
    duration: str | None,
    is_shown: bool,
    master: str | None,
    conf: list[str] | None,
    checkpoint: Path | None,
) -> RunOptions:
    from estream.app import RunOptions
    from estream.duration import parse_duration

    try:
        seconds = None if duration is None else parse_duration(duration) / 1_000_000
    except ValueError as error:
        raise EStreamError(f"--for: {error}") from None
    pairs = [pair.partition("=") for pair in conf or []]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise EStreamError(f"--conf takes KEY=VALUE, not '{key}{equals}{value}'")
    return RunOptions(once, seconds, is_shown, master, {key: value for key, _, value in pairs}, checkpoint)


cli_changes.add_commands(cli)
cli_history.add_commands(cli)


def _load(file: Path, spark: bool = False, imports: bool = False) -> Loaded:
    from estream import app

    app.require_readable(file)
    loaded = app.load(file, os.environ)
    loaded = app.ask_imports(loaded, app.project_root(file), os.environ) if imports else loaded
    return app.ask_spark(loaded) if spark else loaded


def _sources(loaded: Iterable[Loaded]) -> Mapping[str, Sequence[str]]:
    return {file: lines for each in loaded for file, lines in each.sources.items()}


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _files(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{len(files)} files"


def _status(problems: Iterable[Problem], strict: bool) -> int:
    severities = {problem.severity for problem in problems}
    return WRONG if "error" in severities else WARNED if strict and severities else 0


def _finding(finding: Finding, color: bool) -> str:
    tint = {"ok": typer.colors.GREEN, "warn": typer.colors.YELLOW, "fail": typer.colors.RED}[finding.status]
    status = f"{finding.status:4}"
    advice = f"\n      {'':24} do: {finding.advice}" if finding.advice else ""
    return f"{typer.style(status, fg=tint) if color else status}  {finding.name:24} {finding.found}{advice}"


def _color(stream: TextIO) -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def _fail(error: EStreamError) -> NoReturn:
    lines = render(error.problems, {}, _color(sys.stderr)) if error.problems else f"{printable(str(error))}\n"
    typer.echo(lines, nl=False, err=True)
    sys.exit(WRONG)
