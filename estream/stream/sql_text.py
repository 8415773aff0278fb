"""A query's SQL as text: what it is like, and how it is asked of other tables. The words stay the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from estream.spec.checked import CheckedQuery
from estream.spec.model import Query
from estream.spec.sql_syntax import parse_query
from estream.text import Text

_MANY_ROWS = (exp.Explode, exp.Posexplode, exp.Inline, exp.UDTF, exp.Subquery, exp.AggFunc, exp.Window)
_PLAIN = ("expressions", "from_", "where")
"""Clauses of a SELECT that gives at most one row for each row, by itself."""


def sql_of(query: CheckedQuery) -> Text:
    """The SQL of a query that has some."""
    if not isinstance(query.spec, Query) or query.spec.sql is None:
        raise TypeError(f"query {query.name!r} has no SQL")
    return query.spec.sql


def is_plain(sql: Text) -> bool:
    """Whether the SQL looks at each row by itself and gives at most one for it."""
    tree = parse_query(sql)
    if not isinstance(tree, exp.Select) or any(value for key, value in tree.args.items() if key not in _PLAIN):
        return False
    tables = list(tree.find_all(exp.Table))
    return (
        len(tables) == 1
        and not any(value for key, value in tables[0].args.items() if key not in ("this", "alias"))
        and tree.find(*_MANY_ROWS) is None
        and not any(call.name.lower() in ("window", "session_window") for call in tree.find_all(exp.Anonymous))
    )


def with_condition(sql: Text, columns: Iterable[str], view: str, more: tuple[str, str]) -> str:
    """Plain SQL over a view instead of its table; of the columns `more` the first is its WHERE, the second carried."""
    tokens = sqlglot.tokenize(str(sql), dialect="spark")
    outer = list(_outer(tokens))
    begin = next(token for token in outer if token.token_type is TokenType.SELECT)
    source = next(token for token in outer if token.token_type is TokenType.FROM)
    where = next((token for token in outer if token.token_type is TokenType.WHERE), None)
    chosen = [token for token in tokens if begin.end < token.start < source.start]
    items = [_item(sql, item, list(columns)) for item in _items(chosen)]
    condition = str(sql)[where.end + 1 :] if where is not None else "true"
    table = parse_query(sql).find(exp.Table)
    alias = table.alias_or_name if table is not None else view
    held, carried = more
    listed = ",\n".join([*items, f"(\n{condition}\n) AS `{held}`", f"`{carried}`"])
    return f"SELECT {listed}\nFROM `{view}` AS `{alias}`"


def over_views(sql: Text, view_of: Callable[[str], str]) -> str:
    """The SQL with every table it reads replaced by the view that `view_of` gives for it, asked once per place."""
    tree = parse_query(sql)
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    text = str(sql)
    places = [
        (table.this.meta["start"], table.this.meta["end"], table.name, bool(table.alias))
        for table in tree.find_all(exp.Table)
        if table.name.lower() not in own
    ]
    for start, end, name, is_named in sorted(places, reverse=True):
        alias = "" if is_named else f" AS `{name}`"
        text = f"{text[:start]}`{view_of(name)}`{alias}{text[end + 1 :]}"
    return text


def _outer(tokens: Sequence[Token]) -> Iterable[Token]:
    depth = 0
    for token in tokens:
        depth -= token.token_type is TokenType.R_PAREN
        if depth == 0:
            yield token
        depth += token.token_type is TokenType.L_PAREN


def _items(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each item of a select list."""
    commas = {id(token) for token in _outer(tokens) if token.token_type is TokenType.COMMA}
    items: list[list[Token]] = [[]]
    for token in tokens:
        if id(token) in commas:
            items.append([])
        else:
            items[-1].append(token)
    return items


def _item(sql: Text, tokens: Sequence[Token], columns: Sequence[str]) -> str:
    """An item as written; `*` as the columns it stands for, without those it leaves out."""
    kinds = [token.token_type for token in tokens[:3]]
    star = 0 if kinds[:1] == [TokenType.STAR] else 2 if kinds == [kinds[0], TokenType.DOT, TokenType.STAR] else None
    if star is None:
        return str(sql)[tokens[0].start : tokens[-1].end + 1]
    left_out = {token.text.lower() for token in tokens[star + 1 :]}
    return ", ".join(f"`{name}`" for name in columns if name.lower() not in left_out)
