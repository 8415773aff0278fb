"""`estream conformance --host spark`: vectors through the same batch job that a replay is, many in one job."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from estream.conformance import Found, Host, Shown, Vector, definition_of
from estream.conformance_ceq import STREAM, Case, Joined
from estream.errors import EStreamError
from estream.plan.build import build
from estream.plan.model import Plan
from estream.settings import Settings, load_settings, settings_files
from estream.spec.check import check
from estream.spec.checked import Checked
from estream.spec.reader import Read, parse_ceq
from estream.stream.detected import joined
from estream.stream.replay_job import replay_tables
from estream.stream.runner import Job
from estream.testing import Row

CASES_OF_A_JOB = 125
"""More would make masks that Spark takes longer to compile than to start another job."""


def on_spark(environment: Mapping[str, str]) -> Host:
    """Runs vectors on Spark, in the session of the settings."""
    settings = load_settings(settings_files(Path()), environment)

    def run_all(chosen: Sequence[Vector]) -> Iterator[Found]:
        for first in range(0, len(chosen), CASES_OF_A_JOB):
            yield from _run(chosen[first : first + CASES_OF_A_JOB], settings)

    return run_all


def _run(vectors: Sequence[Vector], settings: Settings) -> list[Found]:
    """What each of the vectors gives; one that is wrong does not keep the others from being run."""
    cases = [case_of(vector) for vector in vectors]
    wrong = {place: told for place, case in enumerate(cases) if (told := _wrong(case)) is not None}
    right = [place for place in range(len(cases)) if place not in wrong]
    found = dict(zip(right, detected(Joined([cases[place] for place in right]), settings), strict=True))
    return [wrong.get(place) or found[place] for place in range(len(cases))]


def case_of(vector: Vector) -> Case:
    """A vector of kind `event` or `pattern`, as it is run together with others."""
    rows = [Row(one["event"], one["time"], one["id"], one["attrs"]) for one in vector["input"]]
    if vector["kind"] == "event":
        events = {name: definition_of(one) for name, one in vector["events"].items()}
        return Case(events, rows, vector["observe"])
    pattern = {name: vector[name] for name in ("pattern", "define", "output", "partition_by") if vector[name]}
    timed = [Row(row.event, row.time, row.id, {**row.attributes, "ts": row.time}) for row in rows]
    return Case({"M": {**pattern, "on": vector["stream"]}}, timed, ["M"])


def _wrong(case: Case) -> str | None:
    """What is wrong with the definitions of a case."""
    try:
        _planned(Joined([case]))
    except EStreamError as error:
        return str(error)
    return None


def _planned(cases: Joined) -> tuple[Plan, Checked]:
    """The plan of all cases, which detects what they observe and nothing else."""
    text = json.dumps(cases.document({"format": "parquet", "options": {"path": "rows"}}))
    parsed = parse_ceq(text, "<vectors>", {})
    checked, problems = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    plan, more = build(checked, cases.observe)
    errors = [one for one in (*parsed.problems, *problems, *more) if one.severity == "error"]
    if errors:
        raise EStreamError(errors)
    wanted = set(cases.observe)
    chosen = tuple(one for one in plan.subscriptions if one.event in wanted)
    return replace(plan, subscriptions=chosen), checked


def detected(cases: Joined, settings: Settings) -> list[list[Shown]]:
    """What Spark detects for each case, all in one batch job."""
    if not cases.cases:
        return []
    plan, checked = _planned(cases)
    with TemporaryDirectory(prefix="estream-") as folder:
        rows = Path(folder, "rows.parquet")
        pq.write_table(cases.table(), rows)
        job = Job(plan, checked, settings, Path(folder, "checkpoint"), Path(folder, "channels"))
        tables = replay_tables(job, {STREAM: rows}, {}, Path(folder))
    return cases.told(joined(tables).to_pylist())
