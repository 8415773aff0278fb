"""Brings a database to the tables of this version, by the migrations that come with the package."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from estream.rule.store import StoreStopped


def configuration(connection: Connection) -> Config:
    """Alembic's configuration for a connection."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection) -> None:
    """Run the migrations that the database lacks; one made by a later version is refused."""
    config = configuration(connection)
    script = ScriptDirectory.from_config(config)
    current = MigrationContext.configure(connection).get_current_revision()
    if current == script.get_current_head():
        return
    if current is not None and current not in {one.revision for one in script.walk_revisions()}:
        raise StoreStopped(f"the history was made by a later version of EStream ({current}); update EStream")
    command.upgrade(config, "head")
