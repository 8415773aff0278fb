"""GROUP BY in a continuous query: its keys, what may stand beside them, and what a row is known by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from estream.errors import Problem
from estream.spec.sql_syntax import offset_of
from estream.spec.sql_types import WINDOW, type_of
from estream.spec.types import DataType
from estream.text import Text

_WINDOWS = ("window", "session_window")


def is_window_call(node: exp.Expr) -> bool:
    """True for `window(...)` and `session_window(...)`, the time windows Spark streams know."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in _WINDOWS


def group_keys(select: exp.Select) -> list[exp.Expr]:
    """The expressions of GROUP BY; a position or an output column's name stands for that column."""
    group = select.args.get("group")
    keys = []
    for key in group.expressions if group is not None else ():
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.this) <= len(select.expressions):
            keys.append(select.expressions[int(key.this) - 1].unalias())
        else:
            aliases = [item for item in select.expressions if isinstance(item, exp.Alias)]
            named = [
                item.this for item in aliases if _is_name(key, item.alias) and not isinstance(item.this, exp.Column)
            ]
            keys.append(named[0] if named else key)
    return keys


def output_keys(select: exp.Select, keys: Sequence[exp.Expr], sources: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The output columns that hold the group keys; empty unless all of them come out.

    A SELECT that only passes on the rows of one aggregate passes its keys on too.
    """
    names: dict[str, str] = {}
    for item in select.expressions:
        for form in _forms(item.unalias()):
            names.setdefault(form, item.alias_or_name)
    if keys:
        shown = [next((names[form] for form in _forms(key) if form in names), "") for key in keys]
        return tuple(dict.fromkeys(shown)) if all(shown) else ()
    if len(sources) != 1 or select.args.get("group") is not None or select.args.get("distinct"):
        return ()
    if any(isinstance(item, exp.Star) for item in select.expressions):
        return sources[0]
    passed = tuple(names.get(key.lower(), "") for key in sources[0])
    return passed if all(passed) else ()


def grouping_problems(sql: Text, select: exp.Select, types: Mapping[int, DataType]) -> list[Problem]:
    """Columns neither grouped nor aggregated, and an aggregate that would wait for ever for its groups to close."""
    group = select.args.get("group")
    if group is None or any(value for name, value in group.args.items() if name != "expressions"):
        return []
    keys = group_keys(select)
    if any(isinstance(key, exp.GroupingSets | exp.Cube | exp.Rollup) for key in keys):
        return []
    problems = []
    forms = {form for key in keys for form in (_canonical(key), *_forms(key))}
    for item in [*select.expressions, *filter(None, [select.args.get("having")])]:
        problems += [_ungrouped(sql, column) for column in _outside(item, forms, select)]
    if not any(_has_time(key, types) for key in keys):
        message = "GROUP BY needs a time window, or its groups never close; add window(<time column>, '1 minute')"
        problems.append(sql.problem(message, offset_of(group)))
    return problems


def _ungrouped(sql: Text, column: exp.Column) -> Problem:
    message = f"{column.sql('spark')!r} is neither in GROUP BY nor in an aggregate; add it there or use max(...)"
    return sql.problem(message, offset_of(column), len(column.sql("spark")))


def _outside(node: exp.Expr, grouped: set[str], select: exp.Select) -> list[exp.Column]:
    """Columns below the node that no group key and no aggregate covers."""
    if isinstance(node, exp.AggFunc | exp.Query | exp.Lambda) or any(form in grouped for form in _forms(node)):
        return []
    if isinstance(node, exp.Anonymous) and not is_window_call(node):
        return []  # It may be an aggregate that only Spark knows.
    if isinstance(node, exp.Column):
        aliases = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
        parts = [part.name.lower() for part in node.parts]
        prefixes = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
        return [] if node.is_star or prefixes & (grouped | aliases) else [node]
    return [column for child in node.iter_expressions() for column in _outside(child, grouped, select)]


def _has_time(key: exp.Expr, types: Mapping[int, DataType]) -> bool:
    if any(is_window_call(part) for part in key.walk()):
        return True
    kind = type_of(key, types)
    return not kind.is_known or kind.name in ("timestamp", "struct") or kind == WINDOW


def _is_name(key: exp.Expr, name: str) -> bool:
    return isinstance(key, exp.Column) and not key.table and key.name.lower() == name.lower()


def _canonical(node: exp.Expr) -> str:
    """One spelling of an expression, so that equal ones can be found: columns by their last name, lower case."""
    if isinstance(node, exp.Column):
        return ".".join(part.name.lower() for part in node.parts)
    return node.sql("spark", comments=False).lower()


def _forms(key: exp.Expr) -> list[str]:
    """How an output column may show a key: `t.a` as `a` too, a window by itself, its start or its end."""
    if is_window_call(key):
        name = key.name.lower()
        return [_canonical(key), name, f"{name}.end", f"{name}.start"]
    return [_canonical(key), key.name.lower()] if isinstance(key, exp.Column) else [_canonical(key)]
