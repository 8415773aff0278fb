"""Checks of continuous queries: what they read, what comes out, the time column of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from estream.spec.check_times import check_timestamp
from estream.spec.checked import CheckedQuery, Columns
from estream.spec.expression import Expression
from estream.spec.findings import Findings, in_order
from estream.spec.model import Modify, Query, Window
from estream.spec.sql import Relation, infer, table_names
from estream.spec.type_check import Scope
from estream.spec.types import DOUBLE, TIMESTAMP, DataType, spelling
from estream.spec.window_time import output_delay
from estream.text import Text

_WINDOW = {"start": TIMESTAMP, "end": TIMESTAMP}
"""What `select` and `having` may ask of the window itself, as `window.end`."""


@dataclass(frozen=True, slots=True)
class _Output:
    """What a query gives, whatever computes it; columns are None where they cannot be known."""

    columns: Columns | None
    reads: tuple[str, ...] = ()
    stateful: bool = False
    keys: tuple[str, ...] = ()
    select: tuple[tuple[str, Expression], ...] = ()
    having: Expression | None = None


def check_queries(findings: Findings) -> None:
    """Every query after those it reads."""
    named = {str(name): (name, query) for name, query in findings.ceq.queries.items()}
    # SQL does not regard the case of names; a name that is there as it is written is the one that is meant.
    spelled = {name.lower(): name for name in named} | {name: name for name in (*findings.relations, *named)}
    order, cycles = in_order(
        {name: [_meant(need, spelled) for need in _needs(query)] for name, (_, query) in named.items()}
    )
    for cycle in cycles:
        first, _ = named[cycle[0]]
        findings.say(first, f"query '{first}' reads itself: {' reads '.join(cycle)}")
        findings.used.update(cycle)
        findings.broken.update(("queries", member) for member in cycle)
    for section, broken in sorted(findings.broken):
        if section in ("streams", "tables", "queries"):
            findings.relations.setdefault(broken, Relation(None))
    for name in order:
        _check_query(findings, *named[name])


def _meant(name: str, spelled: Mapping[str, str]) -> str:
    return spelled.get(name) or spelled.get(name.lower(), name)


def _needs(query: Query) -> list[str]:
    if query.sql is not None:
        return table_names(query.sql)
    return [query.from_] if query.from_ is not None else []


def _check_query(findings: Findings, name: Text, query: Query) -> None:
    before = findings.errors()
    subject = f"query '{name}'"
    _check_span(findings, query, subject)
    output = _output(findings, query, subject)
    scope = Scope(output.columns, subject=f"{subject}: where", source="its output")
    where = findings.typed(query.where, scope, boolean=True)
    time = _time(findings, name, query, output, subject)
    if query.window is not None and time is not None:
        _check_window_time(findings, query, query.window, output, time, subject)
    findings.relations[name] = Relation(output.columns, output.keys)
    if findings.errors() > before or output.columns is None:
        findings.broken.add(("queries", name))
        return
    findings.queries[name] = CheckedQuery(
        name=name,
        kind=query.kind,
        spec=query,
        reads=output.reads,
        columns=output.columns,
        time=time,
        stateful=output.stateful,
        default_id=output.keys,
        where=where,
        select=output.select,
        having=output.having,
    )


def _check_span(findings: Findings, query: Query, subject: str) -> None:
    start = check_timestamp(findings, query.start, subject, "start", relative=True)
    stop = check_timestamp(findings, query.stop, subject, "stop", relative=True)
    if start is not None and stop is not None and stop <= start and query.stop is not None:
        findings.say(query.stop, f"{subject}: stop is not after start, so it never sees a row")


def _output(findings: Findings, query: Query, subject: str) -> _Output:
    if query.sql is not None:
        return _sql(findings, query.sql, subject)
    if query.from_ is None:
        message = f"{subject}: cel is reserved for Cayuga's query language, which does not run yet; use sql"
        findings.say(query.cel or Text(""), message)
        return _Output(None)
    source = findings.relation(query.from_, subject, "from")
    given = f"'{query.from_}'"
    findings.columns_exist(query.partition, source.columns, subject, "partition_by", given)
    output = _Output(source.columns, (query.from_,), stateful=query.kind != "where", keys=source.keys)
    if query.modify is not None:
        return replace(output, columns=_modified(findings, query, query.modify, source.columns, subject), keys=())
    for key, names in (("unique", query.unique), ("first_unique", query.first_unique)):
        findings.columns_exist(names or (), source.columns, subject, key, given)
    return _window(findings, query, output, subject) if query.kind == "window" else output


def _sql(findings: Findings, sql: Text, subject: str) -> _Output:
    inferred = infer(sql, findings.relations)
    findings.used.update(inferred.reads)
    findings.problems += [replace(problem, message=f"{subject}: {problem.message}") for problem in inferred.problems]
    return _Output(inferred.columns, inferred.reads, inferred.stateful, inferred.keys)


def _modified(
    findings: Findings, query: Query, modify: Modify, columns: Columns | None, subject: str
) -> dict[str, DataType] | None:
    """The same columns; ratios and slopes are doubles, a difference keeps its type."""
    source = f"'{query.from_}'"
    check_timestamp(findings, modify.until, subject, "until")
    for name in (*modify.attributes, *((modify.over,) if modify.over is not None else ())):
        if not findings.columns_exist([name], columns, subject, "modify", source) or columns is None:
            continue
        kind = columns[spelling(name, columns) or name]
        if kind.is_known and not kind.is_number and not (name == modify.over and kind.name == "timestamp"):
            findings.say(name, f"{subject}: modify names '{name}', which is {kind}; {modify.function} needs a number")
    for name in modify.attributes:
        if spelling(name, modify.partition_by) is not None:
            findings.say(name, f"{subject}: '{name}' is in partition_by, so its change is always 0; modify another")
    if columns is None:
        return None
    changed = {} if modify.function == "adiff" else {spelling(name, columns): DOUBLE for name in modify.attributes}
    return {name: changed.get(name, kind) for name, kind in columns.items()}


def _window(findings: Findings, query: Query, output: _Output, subject: str) -> _Output:
    """A window gives what `select` computes, and nothing else."""
    findings.columns_exist(query.group_by, output.columns, subject, "group_by", f"'{query.from_}'")
    scope = Scope(output.columns, {"window": _WINDOW}, aggregates="window", source=f"'{query.from_}'")
    select = []
    columns: dict[str, DataType] = {}
    for name, text in query.select.items():
        expression = findings.typed(text, replace(scope, subject=f"{subject}: select '{name}'"))
        if expression is not None:
            select.append((str(name), expression))
            columns[str(name)] = expression.type
    having = findings.typed(query.having, replace(scope, subject=f"{subject}: having"), boolean=True)
    known = columns if len(select) == len(query.select) else None
    return replace(output, columns=known, keys=(), select=tuple(select), having=having)


def _time(findings: Findings, name: Text, query: Query, output: _Output, subject: str) -> str | None:
    """The output's time column: the one named by `time`, else the one of what it reads, if it is still there."""
    columns = output.columns
    if columns is None:
        return query.time
    if query.time is not None:
        if not findings.columns_exist([query.time], columns, subject, "time", "its output"):
            return None
        time = spelling(query.time, columns)
    else:
        inherited = [checked.time for read in output.reads if (checked := findings.queries.get(read)) and checked.time]
        time = next((found for read in inherited if (found := spelling(read, columns)) is not None), None)
        if time is None:
            # What it reads may be wrong itself: then its time column is not known.
            if inherited:
                _no_time(findings, name, query, inherited[0], columns)
            return None
    if time is not None and columns[time].is_known and columns[time].name != "timestamp":
        place = query.time or query.sql or name
        findings.say(place, f"{subject}: its time column '{time}' is {columns[time]}; it must be timestamp", 0)
    return time


def _check_window_time(
    findings: Findings, query: Query, window: Window, output: _Output, time: str, subject: str
) -> None:
    source = findings.queries.get(output.reads[0])
    selected = dict(output.select).get(time)
    if source is None or source.time is None or selected is None:
        return
    if output_delay(window, bool(query.group_by), source.time, selected) is None:
        text = next(text for name, text in query.select.items() if name == time)
        message = f"{subject}: its time column '{time}' is '{text.shown}', which may lie far behind its rows"
        findings.say(text, f"{message}; write '{time}: window.end'")


def _no_time(findings: Findings, name: Text, query: Query, wanted: str, columns: Columns) -> None:
    times = [column for column, kind in columns.items() if kind.name == "timestamp"]
    way = f"select '{wanted}', or window.end AS {wanted}" if query.sql else f"add '{wanted}: window.end' to select"
    way = f"add 'time: {times[0]}'" if times else way
    message = f"query '{name}': its output has no time column '{wanted}'; it has {', '.join(columns)}; {way}"
    findings.say(query.sql or name, message, 0)
