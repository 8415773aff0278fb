"""The commands `history`, `history show` and `retry`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from estream.cli_help import LOOK_BACK
from estream.errors import EStreamError

if TYPE_CHECKING:
    from estream.history.database import Database

State = Literal["pending", "running", "done", "failed", "dead", "throttled", "suppressed"]
Given = TypeVar("Given")
WIDE = 10_000
"""Columns of a table that goes to no terminal: nothing is cut."""

LARGEST = 2**63 - 1
"""The largest number that the history can hold."""

history = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@history.callback()
def listed(
    context: typer.Context,
    rule: Annotated[str | None, typer.Option(metavar="NAME", help="Firings of this rule.")] = None,
    event: Annotated[str | None, typer.Option(metavar="NAME", help="Firings on this event.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Detected at this time or later.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Detected before this time.")] = None,
    key: Annotated[str | None, typer.Option(metavar="NAME=VALUE", help="In this partition, as card=7.")] = None,
    state: Annotated[State | None, typer.Option(help="In this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=LARGEST, help="At most so many, the latest first.")] = 50,
    format: Annotated[Literal["table", "json", "csv"], typer.Option(help="For people or for programs.")] = "table",
) -> None:
    """What rules did: every firing with its detection, state and attempts, the latest first.

    TIME is as 2026-12-24T16:00:00Z, or how long ago, as '2 hours'.

    Example:

        estream history --rule AccidentNotify --since '1 day' --state dead
    """
    if context.invoked_subcommand is not None:
        return
    from estream.history import present
    from estream.history.query import Filter, lines

    wanted = Filter(None, rule, event, _time(since, "--since"), _time(until, "--until"), key, state, limit)
    found = asked(lambda database: lines(database, wanted))
    if format == "json":
        typer.echo(present.to_json(found))
    elif format == "csv":
        typer.echo(present.to_csv(found), nl=False)
    elif not found:
        typer.echo("no firings")
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
        typer.echo(present.to_table(found, width))


@history.command("show", short_help="Show everything about one firing.")
def show(
    number: Annotated[
        int, typer.Argument(metavar="ID", min=1, max=LARGEST, help="The id that `estream history` shows.")
    ],
    format: Annotated[Literal["text", "json"], typer.Option(help="Text for people, JSON for programs.")] = "text",
) -> None:
    """Show everything about one firing: constituents as a timeline, the condition with its values, each attempt.

    Example:

        estream history show 42
    """
    import json

    from estream.history import present
    from estream.history.query import whole

    found = asked(lambda database: whole(database, number))
    if format == "json":
        typer.echo(json.dumps(present.whole_as_data(found), indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(present.to_text_whole(found)))


@history.command("counts", short_help="Tell how many rows came late or could not be read, by source.")
def counted(
    format: Annotated[Literal["text", "json"], typer.Option(help="Text for people, JSON for programs.")] = "text",
) -> None:
    """Tell how many rows of each source came late, or were dead letters.

    Example:

        estream history counts
    """
    import json

    from estream.history.query import totals

    found = asked(totals)
    if format == "json":
        names = ("file", "source", "kind", "rows")
        typer.echo(json.dumps([dict(zip(names, one, strict=True)) for one in found], indent=2, ensure_ascii=False))
    elif not found:
        typer.echo("no late rows and no dead letters")
    words = {"late": ("late row", "late rows"), "dead": ("dead letter", "dead letters")}
    for file, source, kind, rows in found if format == "text" else ():
        typer.echo(f"{file}: {source}: {rows:,} {words[kind][rows != 1]}")


def retry(
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="ID", min=1, max=LARGEST, help="Ids of failed or dead firings.")
    ] = None,
    dead: Annotated[bool, typer.Option("--dead", help="All dead letters.")] = False,
) -> None:
    """Ask for another attempt of firings that failed.

    They are tried by whoever runs their file: at once if it runs, else when it starts the next time. Actions of them
    that are done are not repeated.

    Example:

        estream retry 42 43
    """
    from estream.history.query import retry as ask

    if dead == bool(numbers):
        raise EStreamError("name the firings to retry, or give --dead for all dead letters")
    count = asked(lambda database: ask(database, None if dead else list(dict.fromkeys(numbers or ()))))
    typer.echo(f"{count} firing{'' if count == 1 else 's'} will be tried again")


def add_commands(cli: typer.Typer) -> None:
    """Add the commands to the program."""
    listing = "List firings of rules, with state and attempts."
    cli.add_typer(history, name="history", rich_help_panel=LOOK_BACK, short_help=listing)
    cli.command(rich_help_panel=LOOK_BACK)(retry)


def asked(ask: Callable[[Database], Given]) -> Given:
    """What the project's history answers."""
    from estream.history.database import Database
    from estream.rule.store import StoreAway, StoreStopped
    from estream.settings import load_settings, settings_files

    try:
        database = Database(load_settings(settings_files(Path()), os.environ).history.url)
        if not database.exists:
            raise EStreamError(f"there is no history at {database.shown} yet; `estream run` makes it")
        try:
            database.upgrade()
            return ask(database)
        finally:
            database.close()
    except (StoreAway, StoreStopped) as error:
        raise EStreamError(f"the history cannot be read: {error}") from None


def _time(text: str | None, option: str) -> int | None:
    """A time, or one so long ago, in microseconds since the epoch."""
    if text is None:
        return None
    import time
    from datetime import UTC, datetime, timedelta

    from estream.duration import parse_duration

    try:
        moment = datetime.fromisoformat(text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except ValueError:
        pass
    try:
        return max(time.time_ns() // 1000 - parse_duration(text), -LARGEST)
    except ValueError:
        raise EStreamError(f"{option} is {text!r}; write 2026-12-24T16:00:00Z, or how long ago: '2 hours'") from None
