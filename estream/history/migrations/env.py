"""Runs migrations on the connection that `estream.history.migrate` gives."""

from __future__ import annotations

from alembic import context

from estream.history.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
