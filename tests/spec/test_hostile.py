"""Whatever stands in a file, a user gets short messages at places, soon, and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estream.errors import Problem
from estream.plan.build import build
from estream.spec.check import check
from estream.spec.reader import Read, parse_ceq

RIGHT = [path.read_text() for path in sorted((Path(__file__).parent / "testdata/right").glob("*.yaml"))]
STREAM = """\
streams:
  V:
    source: {format: json, options: {path: x}}
    schema: {ts: timestamp, p: string, t: double, n: int}
    time: ts
"""
LONGEST_MESSAGE = 1000
MANY = 200_000


def problems_of(text: str | bytes) -> list[Problem]:
    """All that reading, checking and planning say."""
    parsed = parse_ceq(text, "f.yaml", {"SECRET": "hunter2"})
    checked, found = check(Read(parsed.ceq, parsed.problems, {}, parsed.broken))
    problems = [*parsed.problems, *found, *build(checked, checked.events)[1]]
    for problem in problems:
        assert problem.place.file == "f.yaml"
        assert 1 <= problem.place.line <= max(len(parsed.lines), 1)
        assert problem.place.column >= 1
        assert len(problem.message) <= LONGEST_MESSAGE
        assert "sys.set_int_max" not in problem.message
    return problems


def mask(text: str) -> str:
    return f'{STREAM}events: {{E: {{on: V, mask: "{text}"}}}}\n'


def when(text: str) -> str:
    return f'{STREAM}events:\n  A: {{on: V}}\n  B: {{on: V, mask: n > 1}}\n  E: {{when: "{text}"}}\n'


def sql(text: str) -> str:
    return f'{STREAM}queries: {{Q: {{sql: "{text}"}}}}\n'


def pattern(text: str) -> str:
    return f'{STREAM}events: {{E: {{on: V, pattern: "{text}", define: {{a: n > 1, b: n < 1}}}}}}\n'


def parts(section: str, *lines: str) -> str:
    return STREAM + f"{section}:\n" + "".join(f"  {line}\n" for line in lines)


NESTED = {
    "lists": "a: " + "[" * MANY,
    "maps": "{a: " * MANY,
    "dashes": "- " * MANY,
    "blocks": "".join(" " * level + "a:\n" for level in range(1200)),
    "type": STREAM.replace("n: int", f"n: '{'array<' * MANY}int{'>' * MANY}'"),
    **{
        f"{kind.__name__}_{name}": kind(text)
        for kind in (mask, when, sql, pattern)
        for name, text in {
            "brackets": "(" * MANY,
            "closed_brackets": "(" * MANY + "A" + ")" * MANY,
            "name": "a" * 900_000,
            "blanks": " " * 900_000,
            "quotes": "'" * 900_001,
            "backticks": "`" * 900_001,
            "variables": "${" * MANY,
        }.items()
    },
    "mask_not": mask("NOT " * MANY + "true"),
    "mask_minus": mask("- " * MANY + "1"),
    "mask_sum": mask("1" + "+1" * MANY),
    "mask_case": mask("case when " * 50_000),
    "mask_cast": mask("cast(" * 5000 + "1" + " as int)" * 5000),
    "mask_digits": mask("n = " + "9" * 100_000),
    "mask_exponent": mask("n = 1 and t > 1e999999999 and 'a'"),
    "when_sequence": when("A" + " ; B" * MANY),
    "when_timers": when("A" + " + 1 s" * MANY),
    "when_times": when("times(2," * 5000 + "A" + ")" * 5000),
    "when_digits": when("A + " + "9" * 100_000 + " s"),
    "when_digits_of_a_duration": when("A + " + "9" * 5000 + " s"),
    "when_digits_of_times": when("times(" + "9" * 300 + ", A)"),
    "mask_digits_of_an_interval": mask("ts < ts + interval '" + "9" * 5000 + "' second"),
    "within_digits": parts("events", f"E: {{when: V ; V, within: '{'9' * 5000} s'}}"),
    "sql_digits": sql("SELECT ts, " + "9" * 5000 + " AS a FROM V GROUP BY " + "9" * 5000),
    "pattern_digits": pattern("a{" + "9" * 5000 + "}"),
    "sql_not": sql("SELECT ts FROM V WHERE " + "not " * 4000 + "true"),
    "sql_case": sql("SELECT ts, " + "case when true then " * 600 + "1" + " end" * 600 + " AS a FROM V"),
    "sql_comments": sql("SELECT ts " + "/* " * 6000 + " FROM V"),
    "sql_joins": sql("SELECT a.ts FROM V a" + " JOIN V b ON b.n = a.n" * 700),
    "sql_types": sql("SELECT cast(n as " + "array<" * 2000 + "int" + ">" * 2000 + ") AS a FROM V"),
    "pattern_stars": pattern("a" + "*" * MANY),
    "pattern_repeats": pattern("a{1000}{1000}{1000}"),
    "pattern_nested": pattern("(" * 3000 + "a" + ")*" * 3000),
    "chain": parts("events", "E0: {on: V}", *(f"E{n}: {{when: E{n - 1} ; E{n - 1}}}" for n in range(1, 1000))),
    "cycle": parts("events", *(f"E{n}: {{when: E{(n + 1) % 1000} + 1 s}}" for n in range(1000))),
    "cycles": parts("events", *(f"E{n}: {{when: E{n ^ 1} + 1 s}}" for n in range(1000))),
    "unknown": parts("events", *(f"E{n}: {{on: Vx}}" for n in range(1000))),
    "columns": STREAM.replace("n: int", ", ".join(f"c{n}: int" for n in range(5000)))
    + "events: {E: {on: V, id: [x, y], mask: zz > 1}}",
    "cron": parts("events", f"E: {{cron: '{'*,' * MANY} * * * *'}}"),
    "cron_digits": parts("events", f"E: {{cron: '{'9' * 100_000} * * * *'}}"),
    "at": parts("events", f"E: {{at: '{'9' * 100_000}'}}"),
    "timezone": parts("events", f"E: {{cron: '* * * * *', timezone: '{'../' * 1000}etc/passwd'}}"),
    "priority": parts("rules", f"R: {{on: E, priority: {'9' * 300}, actions: [{{log: a}}]}}"),
    "template": f"{STREAM}events: {{E: {{on: V}}}}\nrules: {{R: {{on: E, actions: [{{log: '{'{E.x}' * 50_000}'}}]}}}}",
    "watermark": STREAM.replace("time: ts", f"time: ts\n    watermark: '{'9' * 100_000} s'"),
    "twice": "k: 1\n" * 1000,
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{to}: &{to} [{', '.join([f'*{of}'] * 9)}]\n" for of, to in zip("abcdefghi", "bcdefghij", strict=True)),
    "long_line": "name: " + "x" * 990_000,
    "too_long": "#" * 1_000_001,
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_a_hostile_file_is_told_briefly(text: str) -> None:
    assert problems_of(text)


MARKS = [
    *" ()[]{}'\"`:;,.*&!|>#%@\\",
    "\n",
    "\n  ",
    "${",
    "${SECRET}",
    "$${",
    "<<",
    "- ",
    "? ",
    "\t",
    "\ufeff",
    "\u2028",
]
SCRAPS = """
    null true -1 1e9 5_min 0_s not and or A( P*( times(2, SELECT FROM on: ts {E.x} count() first( INTERVAL AS é 💥
"""
PIECES = st.sampled_from([*MARKS, *(scrap.replace("_", " ") for scrap in SCRAPS.split())])
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), PIECES), min_size=1, max_size=3)


@given(st.sampled_from(RIGHT), EDITS)
def test_edits_of_right_files_give_located_problems_only(text: str, edits: list[tuple[float, int, str]]) -> None:
    for position, cut, piece in edits:
        start = int(position * len(text))
        text = text[:start] + piece + text[start + cut :]
    for problem in problems_of(text):
        assert "hunter2" not in str(problem)


WORDS = {
    mask: """
        n t p ts 1 2.5 'a' ( ) + - * / % = <> < and or not null is in between like case when then else end cast as int
        interval second abs( coalesce( , max( count() E. true -- /* ` \\\\ :: [ ] -> ? @ { } ; select from
    """,
    when: "A B E C ; and or not( absent( times( A( A*( P( P*( ) [ ] , + 5 s min 0 2 -1 1.5 us 1e9 ' $ . when",
    pattern: "a b c . * + ? | ( ) { } {2} {2,} {,3} {3,1} {0} ! ^ $ , 1 a* .* (a|b) ''",
    sql: """
        SELECT FROM WHERE GROUP BY HAVING V q ts n t window(ts, '1 minute') AS ( ) , * . = 1 'x' JOIN ON USING WITH
        UNION ALL NOT IN EXISTS CASE WHEN END cast OVER count(*) sum( [ ] -> { } : ? ` -- /* interval LATERAL VIEW
        explode VALUES
    """,
}


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_any_words_give_located_problems_only(kind: type[str], data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from(WORDS[kind].split()), max_size=14))
    for problem in problems_of(kind(" ".join(words))):
        assert problem.message


@given(st.sampled_from([mask, when, pattern, sql]), st.text(max_size=30))
def test_any_text_gives_located_problems_only(kind: type[str], text: str) -> None:
    quoted = "".join(f"\\U{ord(letter):08x}" if ord(letter) not in range(0xD800, 0xE000) else "" for letter in text)
    for problem in problems_of(kind(quoted)):
        assert problem.message
