"""Schedules of future queries: when they start and stop, and how far they are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "schedules",
        sa.Column("ceq", sa.Text, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("start", sa.BigInteger),
        sa.Column("stop", sa.BigInteger),
        sa.Column("state", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("ceq", "query"),
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("schedules")
