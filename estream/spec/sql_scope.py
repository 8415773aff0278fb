"""Names in SQL: which tables a SELECT reads, which column each name means, which columns come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from estream.errors import Problem
from estream.spec.sql import Relation
from estream.spec.sql_grouping import group_keys, grouping_problems, is_window_call, output_keys
from estream.spec.sql_syntax import offset_of
from estream.spec.sql_types import WINDOW, field_of, type_of
from estream.spec.types import UNKNOWN, DataType, spelling
from estream.suggest import did_you_mean, listed
from estream.text import Text


@dataclass(slots=True)
class Source:
    """A table in FROM, under the name it has there."""

    name: str
    relation: Relation
    merged: set[str] = field(default_factory=set)
    """Columns that USING made one with those of a table before."""

    def find(self, column: str) -> DataType | None:
        """The column's type, whatever the case of its name; a source of unknown columns has none."""
        for name, found in (self.relation.columns or {}).items():
            if name.lower() == column.lower():
                return found
        return None


@dataclass(slots=True)
class Frame:
    """What names mean inside one SELECT."""

    sources: list[Source] = field(default_factory=list)
    outer: Frame | None = None
    aliases: dict[str, DataType] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """True if some source's columns are unknown, so that any name may be right."""
        return any(source.relation.columns is None for source in self.sources)


class Scopes:
    """Resolves one SQL text; gathers what it reads and every problem with its names."""

    def __init__(self, sql: Text, tables: Mapping[str, Relation]) -> None:
        self.sql = sql
        self.tables = tables
        self.reads: dict[str, None] = {}
        self.problems: list[Problem] = []
        self.stateful = False
        self.types: dict[int, DataType] = {}

    def query(
        self, tree: exp.Expr, given: Mapping[str, Relation] = {}, outer: Frame | None = None, named: bool = True
    ) -> Relation:
        """The output of a SELECT, UNION or subquery; `named` asks for a name on every column."""
        ctes = dict(given)
        clause = tree.args.get("with_")
        if clause is not None and clause.args.get("recursive"):
            self._say("WITH RECURSIVE cannot be used on streams", clause)
        for cte in clause.expressions if clause is not None else ():
            ctes[cte.alias.lower()] = _renamed(self.query(cte.this, ctes, outer), cte)
        if isinstance(tree, exp.SetOperation):
            return self._set_operation(tree, ctes, outer, named)
        if isinstance(tree, exp.Select):
            return self._select(tree, ctes, outer, named)
        if isinstance(tree, exp.Subquery):
            return self.query(tree.this, ctes, outer, named)
        if isinstance(tree, exp.Table):
            return self._table(tree, ctes, outer).relation
        return Relation(None, static=True)

    def _say(self, message: str, node: exp.Expr, length: int = 1, hint: str = "") -> None:
        self.problems.append(self.sql.problem(message, offset_of(node), length, hint or None))

    def _set_operation(
        self, tree: exp.SetOperation, ctes: Mapping[str, Relation], outer: Frame | None, named: bool
    ) -> Relation:
        left, right = self.query(tree.this, ctes, outer, named), self.query(tree.expression, ctes, outer, named=False)
        if not isinstance(tree, exp.Union) and not (left.static and right.static):
            self._say(f"{tree.key.upper()} does not run on streams; use a join, or `not` in an event", tree.expression)
        self.stateful = self.stateful or bool(tree.args.get("distinct"))
        static = left.static and right.static
        if left.columns is None or right.columns is None:
            return Relation(None, static=static)
        if len(left.columns) != len(right.columns) and not tree.args.get("by_name"):
            sides = f"the first has {len(left.columns)}, the second {len(right.columns)}"
            self._say(f"both sides of {tree.key.upper()} need the same number of columns; {sides}", tree.expression)
        pairs = zip(left.columns.items(), [*right.columns.values(), *[UNKNOWN] * len(left.columns)], strict=False)
        return Relation({name: one if one == two else UNKNOWN for (name, one), two in pairs}, static=static)

    def _select(self, select: exp.Select, ctes: Mapping[str, Relation], outer: Frame | None, named: bool) -> Relation:
        frame = Frame(outer=outer)
        clause = select.args.get("from_")
        if clause is not None:
            frame.sources.append(self._table(clause.this, ctes, outer))
        for join in select.args.get("joins") or ():
            self._join(join, frame, ctes)
        for lateral in select.args.get("laterals") or ():
            self._resolve(lateral.this, frame, ctes)
            frame.sources.append(_generated(lateral))
        static = all(source.relation.static for source in frame.sources)
        keys = group_keys(select)
        for key in keys:
            if is_window_call(key):
                frame.aliases[key.name.lower()] = WINDOW
        columns = self._output(select, frame, ctes, named)
        for name in ("where", "group", "having"):
            if (part := select.args.get(name)) is not None:
                self._resolve(part, frame, ctes)
        grouped = select.args.get("group") is not None or bool(select.args.get("distinct"))
        self.stateful = self.stateful or (not static and (grouped or _aggregates(select)))
        if not static and not frame.is_open:
            self.problems += grouping_problems(self.sql, select, self.types)
        return Relation(columns, output_keys(select, keys, [s.relation.keys for s in frame.sources]), static)

    def _table(self, node: exp.Expr, ctes: Mapping[str, Relation], outer: Frame | None) -> Source:
        alias = node.alias_or_name
        if isinstance(node, exp.Subquery) or (isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery)):
            inner = self.query(node.this, ctes, outer)
            return Source(alias, _renamed(inner, node))
        if isinstance(node, exp.Values):
            return _generated(node)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            self._say("FROM reads streams, queries and tables of the file, no functions", node)
            return Source(alias, Relation(None))
        return Source(alias, _renamed(self._named_table(node, ctes), node))

    def _named_table(self, node: exp.Table, ctes: Mapping[str, Relation]) -> Relation:
        name = node.name
        if node.db:
            self._say(f"'{node.db}.{name}' is no name of the file; declare it under `tables:` and use its name", node)
            return Relation(None)
        if name.lower() in ctes:
            return ctes[name.lower()]
        written = spelling(name, self.tables)
        if written is None:
            known = list(self.tables)
            there = f"the file has {listed(known)}" if known else "the file has no streams"
            self._say(f"unknown stream, query or table {name!r}; {there}", node, len(name), did_you_mean(name, known))
            return Relation(None)
        relation = self.tables[written]
        self.reads[written] = None
        return relation

    def _join(self, join: exp.Join, frame: Frame, ctes: Mapping[str, Relation]) -> None:
        source = self._table(join.this, ctes, frame)
        before = all(other.relation.static for other in frame.sources)
        self.stateful = self.stateful or not (before or source.relation.static)
        using = [column.name for column in join.args.get("using") or ()]
        if join.method == "NATURAL":
            known = [name.lower() for other in frame.sources for name in other.relation.columns or ()]
            using = [name for name in source.relation.columns or () if name.lower() in known]
        for column, node in zip(using, join.args.get("using") or (), strict=False):
            if source.relation.columns is not None and source.find(column) is None:
                self._unknown(column, node, [source])
        source.merged = {name.lower() for name in using}
        if source.name and source.name.lower() in (other.name.lower() for other in frame.sources):
            self._say(f"two tables in FROM are called '{source.name}'; give one another name with AS", join.this)
        frame.sources.append(source)
        if (condition := join.args.get("on")) is not None:
            self._resolve(condition, frame, ctes)
        if join.kind in ("SEMI", "ANTI") or join.side in ("SEMI", "ANTI"):
            frame.sources.pop()

    def _output(
        self, select: exp.Select, frame: Frame, ctes: Mapping[str, Relation], named: bool
    ) -> dict[str, DataType] | None:
        columns: dict[str, DataType] = {}
        is_open = False
        for number, item in enumerate(select.expressions, 1):
            found = self._item(item, number, frame, ctes, named)
            is_open = is_open or found is None
            for name, kind in (found or {}).items():
                if named and name.lower() in (known.lower() for known in columns):
                    self._say(f"two output columns are called {name!r}; give one another name with AS", item)
                columns[name if named else f"{len(columns)}"] = kind
                frame.aliases.setdefault(name.lower(), kind)
        return None if is_open else columns

    def _item(
        self, item: exp.Expr, number: int, frame: Frame, ctes: Mapping[str, Relation], named: bool
    ) -> dict[str, DataType] | None:
        if item.is_star:
            return self._star(item, frame)
        if isinstance(item, exp.QueryTransform):
            return None
        self._resolve(item, frame, ctes)
        if isinstance(item, exp.Aliases):
            return {name.name: UNKNOWN for name in item.expressions}
        name = item.alias_or_name if isinstance(item, exp.Alias | exp.Column) else _spark_name(item)
        if not name:
            if named:
                self._say(f"output column {number} has no name; write it as '{item.sql('spark')} AS name'", item)
            name = f"column {number}"
        inner = item.unalias()
        return {name: WINDOW if is_window_call(inner) else type_of(inner, self.types)}

    def _star(self, item: exp.Expr, frame: Frame) -> dict[str, DataType] | None:
        wanted = item.table.lower() if isinstance(item, exp.Column) else None
        sources = [source for source in frame.sources if wanted is None or source.name.lower() == wanted]
        if wanted is not None and not sources and not frame.is_open:
            names = [source.name for source in frame.sources]
            self._say(f"unknown table {item.name or wanted!r}; FROM has {listed(names)}", item)
        if not sources or any(source.relation.columns is None for source in sources):
            return None
        star = item.this if isinstance(item, exp.Column) else item
        left_out = {column.name.lower() for column in star.args.get("except_") or ()}
        columns: dict[str, DataType] = {}
        for source in sources:
            for name, kind in (source.relation.columns or {}).items():
                if name.lower() in left_out or (wanted is None and name.lower() in source.merged):
                    continue
                if name.lower() in (known.lower() for known in columns):
                    self._say(f"two output columns are called {name!r}; name the columns instead of '*'", item)
                columns[name] = kind
        return columns

    def _resolve(self, node: exp.Expr, frame: Frame, ctes: Mapping[str, Relation]) -> None:
        """Finds the meaning of every column below the node; subqueries see this frame from inside."""
        for part in node.walk(prune=lambda found: isinstance(found, exp.Query)):
            if isinstance(part, exp.Query):
                self.query(part, ctes, frame, named=False)
            elif isinstance(part, exp.Column) and not _is_lambda_argument(part):
                self.types[id(part)] = self._column(part, frame)

    def _column(self, column: exp.Column, frame: Frame) -> DataType:
        parts = [part.name for part in column.parts]
        inside: Frame | None = frame
        while inside is not None:
            found = self._in_frame(column, parts, inside)
            if found is not None:
                return found
            if inside.is_open:
                return UNKNOWN
            inside = inside.outer
        return self._missing(column, parts, frame)

    def _in_frame(self, column: exp.Column, parts: list[str], frame: Frame) -> DataType | None:
        """The type of `source.column.field`, `column.field` or an alias; None if this SELECT has no such thing."""
        for source in frame.sources:
            if len(parts) > 1 and source.name.lower() == parts[0].lower():
                found = source.find(parts[1])
                return found if found is None else self._fields(column, parts[1], found, parts[2:])
        holders = [s for s in frame.sources if s.find(parts[0]) is not None and parts[0].lower() not in s.merged]
        if len(holders) > 1:
            written = " or ".join(f"{source.name}.{parts[0]}" for source in holders)
            self._say(f"{parts[0]!r} is a column of more than one table; write {written}", column, len(parts[0]))
            return UNKNOWN
        found = holders[0].find(parts[0]) if holders else frame.aliases.get(parts[0].lower())
        return None if found is None else self._fields(column, parts[0], found, parts[1:])

    def _fields(self, column: exp.Column, name: str, found: DataType, fields: list[str]) -> DataType:
        for wanted in fields:
            inner = field_of(found, wanted)
            if inner is None:
                there = ", ".join(argument.split(":")[0] for argument in found.arguments)
                self._say(f"{name!r} has no field {wanted!r}; it has {there}", column)
                return UNKNOWN
            name, found = wanted, inner
        return found

    def _missing(self, column: exp.Column, parts: list[str], frame: Frame) -> DataType:
        named = [source for source in frame.sources if source.name.lower() == parts[0].lower()]
        if len(parts) > 1 and not named:
            names = [source.name for source in frame.sources]
            there = f"FROM has {listed(names)}" if names else "there is no FROM"
            self._say(f"unknown table {parts[0]!r}; {there}", column, len(parts[0]), did_you_mean(parts[0], names))
        else:
            self._unknown(parts[1] if named and len(parts) > 1 else parts[0], column, named or frame.sources)
        return UNKNOWN

    def _unknown(self, name: str, node: exp.Expr, sources: list[Source]) -> None:
        known = [column for source in sources for column in source.relation.columns or ()]
        there = "; ".join(f"{s.name or 'the subquery'} has {listed(s.relation.columns or ())}" for s in sources)
        self._say(f"unknown column {name!r}; {there or 'there is no FROM'}", node, len(name), did_you_mean(name, known))


def _renamed(relation: Relation, node: exp.Expr) -> Relation:
    alias = node.args.get("alias")
    names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    if not names or relation.columns is None:
        return relation
    return replace(relation, columns=dict(zip(names, relation.columns.values(), strict=False)), keys=())


def _generated(node: exp.Lateral | exp.Values) -> Source:
    """`LATERAL VIEW explode(x) t AS a`, `VALUES (1) AS t(a)`: columns whose types only Spark knows."""
    alias = node.args.get("alias")
    names = [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []
    return Source(node.alias, Relation(dict.fromkeys(names, UNKNOWN) if names else None, static=True))


def _spark_name(item: exp.Expr) -> str:
    """The name Spark gives by itself where it is a word one can write."""
    if is_window_call(item):
        return item.name.lower()
    if isinstance(item, exp.Dot):
        return str(item.expression.name)
    return "col" if isinstance(item, exp.Explode) else ""


def _aggregates(select: exp.Select) -> bool:
    parts = [*select.expressions, *filter(None, [select.args.get("having")])]
    return any(
        isinstance(node, exp.AggFunc)
        for part in parts
        for node in part.walk(prune=lambda found: isinstance(found, exp.Query))
    )


def _is_lambda_argument(column: exp.Column) -> bool:
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if any(argument.name == column.parts[0].name for argument in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False
