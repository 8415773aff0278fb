"""The first tables: detections, firings, attempts, rules with their versions, throttles, raised events, counts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_OPEN = sa.text("state IN ('pending', 'running', 'failed')")
_DEAD = sa.text("state = 'dead'")
TABLES = (
    "counts", "throttles", "raised", "attempts", "firings", "detections", "versions", "rules", "events",
)  # fmt: skip


def _whole(name: str, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _small(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False)


def _text(name: str, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def upgrade() -> None:
    """Make the tables."""
    _definitions()
    _detections()
    _firings()
    op.create_table(
        "throttles", _small("rule"), _text("partition"), _whole("end"), sa.PrimaryKeyConstraint("rule", "partition")
    )
    op.create_table(
        "counts", _text("ceq"), _whole("batch"), _text("source"), _text("kind"), _whole("rows"),
        sa.PrimaryKeyConstraint("ceq", "batch", "source", "kind"),
    )  # fmt: skip


def _definitions() -> None:
    op.create_table(
        "events", sa.Column("number", sa.Integer, primary_key=True), _text("ceq"), _text("name"), _text("context"),
        sa.UniqueConstraint("ceq", "name", "context"),
    )  # fmt: skip
    op.create_table(
        "rules", sa.Column("number", sa.Integer, primary_key=True), _text("ceq"), _text("name"),
        sa.UniqueConstraint("ceq", "name"),
    )  # fmt: skip
    op.create_table(
        "versions", sa.Column("number", sa.Integer, primary_key=True), _small("rule"), _text("version"),
        _text("definition"), _text("condition", True), _small("priority"), _text("coupling"), _whole("since"),
        sa.UniqueConstraint("rule", "version"),
    )  # fmt: skip


def _detections() -> None:
    op.create_table(
        "detections", sa.Column("number", _NUMBER, primary_key=True), _small("event"), _whole("id"), _whole("start"),
        _whole("end"), _whole("batch"), _whole("tick", True), _text("ticks", True), _text("constituents"),
        _whole("recorded"), sa.UniqueConstraint("event", "id"),
    )  # fmt: skip
    op.create_index("detections_end", "detections", ["end"])


def _firings() -> None:
    op.create_table(
        "firings", sa.Column("number", _NUMBER, primary_key=True), _small("rule"), _small("version"), _small("event"),
        _whole("detection"), _text("partition", True), _text("state"),
        sa.Column("step", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),
        _whole("due", True), _text("error", True), sa.UniqueConstraint("rule", "detection"),
    )  # fmt: skip
    op.create_index("firings_open", "firings", ["state", "due", "number"], sqlite_where=_OPEN, postgresql_where=_OPEN)
    op.create_index("firings_dead", "firings", ["number"], sqlite_where=_DEAD, postgresql_where=_DEAD)
    op.create_table(
        "attempts", _small("rule"), _whole("detection"), _small("number"), _small("action"), _whole("started"),
        _whole("duration"), _text("error", True),
    )  # fmt: skip
    op.create_index("attempts_firing", "attempts", ["rule", "detection"])
    op.create_table("raised", _small("rule"), _whole("detection"), _text("event"), _whole("time"), _small("depth"))
    op.create_index("raised_event", "raised", ["event", "time"])
    op.create_index("raised_firing", "raised", ["rule", "detection"])


def downgrade() -> None:
    """Drop the tables."""
    for table in TABLES:
        op.drop_table(table)
