"""The commands that change a run while it goes on: `apply`, `mask`, `rule enable`, `rule disable`; and `changes`."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from estream.cli_help import CHANGE
from estream.errors import EStreamError

if TYPE_CHECKING:
    from estream.history.changes import Changed
    from estream.stream.change import Answer, Desk, Request

REFUSED = 2

OfOption = Annotated[
    str | None, typer.Option("--of", metavar="NAME", help="Which CEQ file, by its name, if several run.")
]
CheckpointOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="The run's checkpoint, if it was given one.")
]
RuleName = Annotated[str, typer.Argument(metavar="NAME", help="The rule.", show_default=False)]

rule = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Enable or disable a rule of a run.")


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new version of a CEQ file.", show_default=False)],
    checkpoint: CheckpointOption = None,
) -> None:
    """Let a run go on with a new version of its file. A wrong one is refused, and the run goes on as it was.

    Events that stay keep their partial matches; `estream plan FILE` says beforehand what is kept.

    Exit status: 0 if it has taken effect, 2 if it was refused.

    Example:

        estream apply ceq_specs/car_adn.yaml
    """
    from estream import app
    from estream.report import render
    from estream.stream.change import Desk, Request

    app.require_readable(file)
    loaded = app.load(file, os.environ)
    typer.echo(render(loaded.problems, loaded.sources), nl=False, err=True)
    if loaded.is_wrong:
        raise typer.Exit(REFUSED)
    job = app.job_of(loaded, app.project_root(file), os.environ, app.RunOptions(checkpoint=checkpoint))
    _ask(Desk(job.checkpoint), Request("apply", _who(), file=str(file.resolve())))


def mask(
    event: Annotated[str, typer.Argument(metavar="EVENT", help="A primitive or composite event.", show_default=False)],
    condition: Annotated[str | None, typer.Argument(metavar="CONDITION", help="Its new mask.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Let it have no mask.")] = False,
    of: OfOption = None,
    checkpoint: CheckpointOption = None,
) -> None:
    """Give an event of a run another mask.

    It counts until the file changes: what the file says then goes over it.

    Example:

        estream mask EImmobile "lane = 0 AND reports > 5"
    """
    from estream.stream.change import Request

    if clear == (condition is not None):
        raise EStreamError("give the new mask, or --clear for none")
    _ask(_desk(of, checkpoint), Request("mask", _who(), name=event, mask=condition))


@rule.command()
def enable(name: RuleName, of: OfOption = None, checkpoint: CheckpointOption = None) -> None:
    """Let a rule of a run fire again.

    Example:

        estream rule enable AccidentNotify
    """
    _switch(name, True, of, checkpoint)


@rule.command(short_help="Let a rule of a run fire no more.")
def disable(name: RuleName, of: OfOption = None, checkpoint: CheckpointOption = None) -> None:
    """Let a rule of a run fire no more; its event is detected as before.

    Example:

        estream rule disable AccidentNotify
    """
    _switch(name, False, of, checkpoint)


def changes(
    of: OfOption = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the latest first.")] = 50,
    format: Annotated[Literal["text", "json"], typer.Option(help="Text for people, JSON for programs.")] = "text",
) -> None:
    """What was changed of runs while they went on: when, by whom, and from which micro-batch and watermark on.

    Example:

        estream changes --of car_adn
    """
    import dataclasses
    import json

    from estream.cli_history import asked
    from estream.history.changes import list_changes

    found = asked(lambda database: list_changes(database, of, limit))
    if format == "json":
        typer.echo(json.dumps([dataclasses.asdict(one) for one in found], indent=2, ensure_ascii=False))
    else:
        for one in found:
            typer.echo("\n".join(_told(one)))


def add_commands(cli: typer.Typer) -> None:
    """Add the commands to the program."""
    cli.command(rich_help_panel=CHANGE, short_help="Let a run go on with a new version of its file.")(apply)
    cli.command(rich_help_panel=CHANGE)(mask)
    cli.add_typer(rule, name="rule", rich_help_panel=CHANGE)
    cli.command(rich_help_panel=CHANGE, short_help="List what was changed of runs, when and by whom.")(changes)


def _switch(name: str, enabled: bool, of: str | None, checkpoint: Path | None) -> None:
    from estream.stream.change import Request

    _ask(_desk(of, checkpoint), Request("rule", _who(), name=name, enabled=enabled))


def _desk(of: str | None, checkpoint: Path | None) -> Desk:
    """The run that is meant: by its checkpoint, by its name, or the only one."""
    from estream.settings import load_settings, settings_files
    from estream.stream.change import Desk, running

    if checkpoint is not None:
        return Desk(checkpoint)
    folder = Path(load_settings(settings_files(Path()), os.environ).paths.checkpoints)
    if of is not None:
        return Desk(folder / of)
    desks = running(folder)
    if not desks:
        raise EStreamError("nothing runs here; start a file with `estream run`")
    if len(desks) > 1:
        names = ", ".join(desk.folder.name for desk in desks)
        raise EStreamError(f"several files run here: {names}; say which with --of")
    return desks[0]


def _ask(desk: Desk, request: Request) -> None:
    answer = desk.ask(request)
    typer.echo("\n".join(_answer(desk.folder.name, answer)), err=not answer.accepted)
    if not answer.accepted:
        raise typer.Exit(REFUSED)


def _answer(name: str, answer: Answer) -> list[str]:
    if not answer.accepted:
        return [f"{name}: refused; the run goes on as it was", *(f"  {line}" for line in answer.told)]
    if answer.batch is None:
        return [f"{name}: {line}" for line in answer.told]
    way = "started anew on its checkpoint" if answer.restarted else "without a restart"
    return [f"{name}: changed from micro-batch {answer.batch} on, {way}", *(f"  {line}" for line in answer.told)]


def _told(one: Changed) -> list[str]:
    from estream.stream.detected import instant

    reached = (
        "no watermark yet" if one.watermark is None or one.watermark < 0 else f"watermark {instant(one.watermark)}"
    )
    head = f"{instant(one.at)}  {one.ceq}  {one.by}: {one.request}"
    return [head, f"  from micro-batch {one.batch} on, {reached}", *(f"  {line}" for line in one.told)]


def _who() -> str:
    """Who asks, for the history."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid()) if sys.platform != "win32" else "unknown"
