"""The tables of the history. Times are microseconds since the epoch; the migrations make the same tables."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, PrimaryKeyConstraint, Table, Text, UniqueConstraint
from sqlalchemy import text as sql

metadata = MetaData()

Number = BigInteger().with_variant(Integer, "sqlite")
"""A key that the database counts up."""

OPEN = ("pending", "running", "failed")
"""States of firings that something is still to be done for."""

events = Table(
    "events",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("ceq", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("context", Text, nullable=False),
    UniqueConstraint("ceq", "name", "context"),
)
"""Events in the contexts they are detected in; an event's own context is empty text."""

rules = Table(
    "rules",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("ceq", Text, nullable=False),
    Column("name", Text, nullable=False),
    UniqueConstraint("ceq", "name"),
)

versions = Table(
    "versions",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("rule", Integer, nullable=False),
    Column("version", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("condition", Text),
    Column("priority", Integer, nullable=False),
    Column("coupling", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
    UniqueConstraint("rule", "version"),
)
"""Every definition a rule has had."""

detections = Table(
    "detections",
    metadata,
    Column("number", Number, primary_key=True),
    Column("event", Integer, nullable=False),
    Column("id", BigInteger, nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("tick", BigInteger),
    Column("ticks", Text),
    Column("constituents", Text, nullable=False),
    Column("recorded", BigInteger, nullable=False),
    UniqueConstraint("event", "id"),
    Index("detections_end", "end"),
)

firings = Table(
    "firings",
    metadata,
    Column("number", Number, primary_key=True),
    Column("rule", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("event", Integer, nullable=False),
    Column("detection", BigInteger, nullable=False),
    Column("partition", Text),
    Column("state", Text, nullable=False),
    Column("step", Integer, nullable=False, server_default=sql("0")),
    Column("attempts", Integer, nullable=False, server_default=sql("0")),
    Column("due", BigInteger),
    Column("error", Text),
    UniqueConstraint("rule", "detection"),
    Index("firings_open", "state", "due", "number", sqlite_where=sql("state IN ('pending', 'running', 'failed')"),
          postgresql_where=sql("state IN ('pending', 'running', 'failed')")),
    Index("firings_dead", "number", sqlite_where=sql("state = 'dead'"), postgresql_where=sql("state = 'dead'")),
)  # fmt: skip

attempts = Table(
    "attempts",
    metadata,
    Column("rule", Integer, nullable=False),
    Column("detection", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("action", Integer, nullable=False),
    Column("started", BigInteger, nullable=False),
    Column("duration", BigInteger, nullable=False),
    Column("error", Text),
    Index("attempts_firing", "rule", "detection"),
)

raised = Table(
    "raised",
    metadata,
    Column("rule", Integer, nullable=False),
    Column("detection", BigInteger, nullable=False),
    Column("event", Text, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("depth", Integer, nullable=False),
    Index("raised_event", "event", "time"),
    Index("raised_firing", "rule", "detection"),
)
"""Events that actions raised, and how deep in a cascade."""

throttles = Table(
    "throttles",
    metadata,
    Column("rule", Integer, nullable=False),
    Column("partition", Text, nullable=False),
    Column("end", BigInteger, nullable=False),
    PrimaryKeyConstraint("rule", "partition"),
)
"""The end of the detection that each partition of a throttled rule last fired for."""

counts = Table(
    "counts",
    metadata,
    Column("ceq", Text, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("source", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    PrimaryKeyConstraint("ceq", "batch", "source", "kind"),
)
"""Late rows and dead letters by source and micro-batch."""

changes = Table(
    "changes",
    metadata,
    Column("number", Number, primary_key=True),
    Column("ceq", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("batch", BigInteger),
    Column("watermark", BigInteger),
    Column("told", Text, nullable=False),
)
"""What was changed of runs while they went on: when and by whom, and the micro-batch and watermark it began at."""

schedules = Table(
    "schedules",
    metadata,
    Column("ceq", Text, nullable=False),
    Column("query", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("start", BigInteger),
    Column("stop", BigInteger),
    Column("state", Text, nullable=False),
    PrimaryKeyConstraint("ceq", "query"),
)
"""Future queries: what they were written as, when they start and stop, and whether they wait, run or are over."""

owners = Table(
    "owners",
    metadata,
    Column("ceq", Text, primary_key=True),
    Column("token", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("since", BigInteger, nullable=False),
)
"""The process that runs a CEQ file, or ran it last."""
