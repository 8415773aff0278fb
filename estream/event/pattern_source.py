"""The source of the function that matches one pattern, for numba to compile.

The function goes through the rows of a step in their order. For each row it moves the partial matches of the row's
partition on, the oldest first, then lets the row begin one. It stops where it needs more room and says at which row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from estream.event import scalar
from estream.event.pattern_kernel import FOUND_WORDS, RECORD_WORDS
from estream.event.pattern_layout import ANY_ROW, Accumulator, Layout
from estream.event.pattern_transitions import meets, reach_lines, words_of_set
from estream.spec.expression import Aggregate, Attribute, Expression, Literal, Operation, walk

_WORDS = (
    *("MATCHES", "BASE", "LIVE", "SEEN", "LAST_ROW", "START", "FIRST_ID", "BEGUN", "NONE", "SIZE"),
    *("FOUND_ROW", "FOUND_START", "FOUND_ID", "FOUND_COUNT"),
)
HEADER = f'''"""The matching of one pattern, made by EStream."""

from numba import njit, types

from estream.event.pattern_kernel import get, put, widen, {", ".join(_WORDS)}
{scalar.PREAMBLE}
READ = types.Array(types.int64, 1, "C", readonly=True)
READ_REAL = types.Array(types.float64, 1, "C", readonly=True)
READ_NULL = types.Array(types.boolean, 1, "C", readonly=True)
WORDS = types.Array(types.int64, 1, "C")
REALS = types.Array(types.float64, 1, "C")
'''
_CHEAP = {"=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is_null", "+", "-", "*"}
_STATE = ("header", "partitions", "partition_reals", "records", "record_reals", "found", "previous")
_STATE_TYPES = "WORDS, WORDS, REALS, WORDS, REALS, WORDS, WORDS"
# Nothing but `run` calls a predicate: what Python and C would call it by takes as long to compile as itself.
_PREDICATE = "@njit(error_model='numpy', no_cpython_wrapper=True, no_cfunc_wrapper=True)\n"


def source_of(layout: Layout, with_rows: bool) -> str:
    """The module of a pattern: `run(row, offset, keys, times, ids, texts, <columns>, <state>)`.

    `offset` is the number of the first row among those kept; each column is its values and its null flags.
    """
    return _Source(layout, with_rows).module()


def _indented(lines: Iterable[str], depth: int = 1) -> Iterator[str]:
    return (" " * (4 * depth) + line for line in lines)


class _Source:
    def __init__(self, layout: Layout, with_rows: bool) -> None:
        self.layout, self.with_rows = layout, with_rows
        self.pattern, self.automaton = layout.pattern, layout.automaton
        self.words = layout.state_words
        self.overlap = layout.pattern.skip == "overlap"
        self.prunes = layout.is_same_for_all
        self.columns = list(layout.columns.values())
        self.arguments = {
            name: {argument: f"a{number}" for number, argument in enumerate(scalar.arguments_of(expression))}
            for name, expression in layout.predicates.items()
        }

    def module(self) -> str:
        functions = [
            _PREDICATE + scalar.to_source(expression, f"is_{name}", self.arguments[name])
            for name, expression in self.layout.predicates.items()
        ]
        return HEADER + "\n\n" + "\n\n".join([*functions, "\n".join(self.run())]) + "\n"

    def run(self) -> Iterator[str]:
        names = ", ".join(f"c{column.number}, c{column.number}_null" for column in self.columns)
        kinds = ", ".join(f"{'READ_REAL' if column.is_real else 'READ'}, READ_NULL" for column in self.columns)
        given = f"row, offset, keys, times, ids, texts, {names + ', ' if names else ''}{', '.join(_STATE)}"
        taken = f"types.int64, types.int64, READ, READ, READ, READ, {kinds + ', ' if kinds else ''}{_STATE_TYPES}"
        yield f"@njit(types.int64({taken}), cache=True, error_model='numpy')"
        yield f"def run({given}):"
        yield from _indented(self.body())

    def body(self) -> Iterator[str]:
        yield f"room = len(found) // {self.layout.found_size}"
        for place in self.layout.texts.values():
            yield f"t{place} = get(texts, {place})"
        yield "while row < len(keys):"
        yield "    key = get(keys, row)"
        yield "    if key < 0:"
        yield "        row += 1"
        yield "        continue"
        yield f"    part = key * {self.layout.partition_size}"
        yield f"    if get(header, MATCHES) + {'get(partitions, part + LIVE) + 1' if self.overlap else '1'} > room:"
        yield "        return row"
        yield "    size = get(partitions, part + SIZE)"
        yield "    if size < 0 or get(partitions, part + LIVE) >= 1 << size:"
        yield "        if not widen(header, partitions, records, part):"
        yield "            return ~row"
        yield from _indented(self.one_row())
        yield "    row += 1"
        yield "return row"

    def one_row(self) -> Iterator[str]:
        size = self.layout.record_size
        yield "now, seen, live = get(times, row), get(partitions, part + SEEN), 0"
        yield from self.row_values()
        if self.prunes:
            yield " = ".join([*(f"covered{word}" for word in range(self.words)), "0"])
        if self.with_rows:
            yield "follows = get(partitions, part + LIVE) > 0"
            yield "put(previous, offset + row, get(partitions, part + LAST_ROW) if follows else NONE)"
        yield "record = kept = get(partitions, part + BASE)"
        yield f"end, complete = record + get(partitions, part + LIVE) * {size}, False"
        yield "while record < end:"
        yield from _indented(self.moved_on())
        yield "if complete:"
        yield "    live = 0"
        yield "else:"
        yield "    record = kept"
        yield from _indented(self.begun())
        yield "put(partitions, part + LIVE, live)"
        yield "put(partitions, part + SEEN, seen + 1)"
        if self.with_rows:
            yield "put(partitions, part + LAST_ROW, offset + row)"
        for expression, place in self.layout.last.items():
            column = self.layout.columns[expression]
            yield f"put({_array('partition', column.is_real)}, part + {place}, x{column.number})"
            yield f"put(partitions, part + {place + 1}, x{column.number}_null)"

    def row_values(self) -> Iterator[str]:
        for column in self.columns:
            name = f"c{column.number}"
            yield f"x{column.number}, x{column.number}_null = get({name}, row), get({name}_null, row)"
        for expression, place in self.layout.last.items():
            column = self.layout.columns[expression]
            yield f"l{column.number} = get({_array('partition', column.is_real)}, part + {place})"
            yield f"l{column.number}_null = get(partitions, part + {place + 1}) != 0"

    def moved_on(self) -> Iterator[str]:
        """One partial match takes the row in; it is kept if it is still in some state."""
        size = self.layout.record_size
        for word in range(self.words):
            yield f"s{word} = get(records, record + {RECORD_WORDS + word})"
        yield from reach_lines(self.automaton, self.words)
        yield from self.held(range(len(self.automaton.predicates)), "r")
        if self.pattern.within is not None:
            yield f"if now - get(records, record + START) > {self.pattern.within}:"
            yield from _indented(self.no_states())
        for accumulator in self.layout.accumulators.values():
            yield from self.folded(accumulator)
        yield f"if {meets('s', self.automaton.final, self.words)}:"
        yield from _indented(self.found())
        yield from _indented(self.no_states() if self.overlap else ["complete = True", "break"])
        yield from self.kept_states()
        yield "if kept != record:"
        yield f"    for word in range({size}):"
        yield "        put(records, kept + word, get(records, record + word))"
        yield f"if {self.any_state}:"
        yield "    live += 1"
        yield f"    kept += {size}"
        yield f"record += {size}"

    def begun(self) -> Iterator[str]:
        """The row begins a partial match."""
        first = self.automaton.first
        for word, bits in enumerate(words_of_set(first, self.words)):
            yield f"r{word} = {bits}"
        yield from self.held([state for state in range(len(self.automaton.predicates)) if first >> state & 1], "r")
        yield f"if {self.any_state}:"
        yield "    put(records, record + START, now)"
        yield "    put(records, record + FIRST_ID, get(ids, row))"
        yield "    put(records, record + BEGUN, seen)"
        for accumulator in self.layout.accumulators.values():
            yield from _indented(self.started(accumulator))
        if first & self.automaton.final:
            yield f"    if {meets('s', self.automaton.final, self.words)}:"
            yield from _indented(self.found(), 2)
            yield from _indented(self.no_states() if self.overlap else ["live = 0", *self.no_states()], 2)
            yield f"if {self.any_state}:"
        yield from _indented(self.kept_states())
        yield "    live += 1"

    @property
    def any_state(self) -> str:
        return " | ".join(f"s{word}" for word in range(self.words)) + " != 0"

    def no_states(self) -> Iterator[str]:
        return (f"s{word} = 0" for word in range(self.words))

    def kept_states(self) -> Iterator[str]:
        for word in range(self.words):
            yield f"put(records, record + {RECORD_WORDS + word}, s{word})"
            if self.prunes:
                yield f"covered{word} |= s{word}"

    def held(self, states: range | list[int], reached: str) -> Iterator[str]:
        """Lines that make the words of states from those that were reached and whose predicates hold."""
        held = {(name, negated): 0 for name in (ANY_ROW, *self.layout.predicates) for negated in (False, True)}
        for state in states:
            predicate = self.automaton.predicates[state]
            held[predicate.name, predicate.negated] |= 1 << state
        for word, bits in enumerate(words_of_set(held[ANY_ROW, False], self.words)):
            yield f"h{word} = {bits}"
        for name in self.layout.predicates:
            positive, negative = held[name, False], held[name, True]
            if positive | negative:
                yield from self.asked_if_reached(name, positive, negative, reached)
        for word in range(self.words):
            yield f"s{word} = {reached}{word} & h{word}" + (f" & ~covered{word}" if self.prunes else "")

    def asked_if_reached(self, name: str, positive: int, negative: int, reached: str) -> Iterator[str]:
        """Lines that ask a predicate; one that is quicker to ask than to predict a branch for is always asked."""
        cheap = _is_cheap(self.layout.predicates[name])
        yield "if True:" if cheap else f"if {meets(reached, positive | negative, self.words)}:"
        yield f"    if is_{name}({self.asked(name)})[0]:"
        yield from _indented(self.hold(positive), 2)
        if negative:
            yield "    else:"
            yield from _indented(self.hold(negative), 2)

    def hold(self, states: int) -> Iterator[str]:
        lines = [f"h{word} |= {bits}" for word, bits in enumerate(words_of_set(states, self.words)) if bits]
        yield from lines or ["pass"]

    def asked(self, name: str) -> str:
        return ", ".join(self.argument(argument) for argument in self.arguments[name])

    def argument(self, argument: scalar.Argument) -> str:
        """What a predicate is given for an attribute, a constant text or an aggregate, with its null flag."""
        match argument:
            case Literal(value=value):
                return f"t{self.layout.texts[str(value)]}"
            case Attribute():
                number = self.layout.column(argument).number
                return f"x{number}, x{number}_null"
            case Aggregate(operand=None):
                return "seen - get(records, record + BEGUN), False"
            case Aggregate(name="last", operand=operand) if operand is not None:
                number = self.layout.column(operand).number
                return f"l{number}, l{number}_null"
        made_of = self.layout.of_aggregate(argument)
        value = " / max(1, ".join(_value("record", each) for each in made_of) + ")" * (len(made_of) - 1)
        return f"{value}, {_null('record', made_of[0])}"

    def folded(self, accumulator: Accumulator) -> Iterator[str]:
        """Lines that take the row into an accumulator."""
        x, value = f"x{accumulator.column.number}", _value("record", accumulator)
        match accumulator.fold:
            case "count":
                yield _set("record", accumulator, f"{value} + (0 if {x}_null else 1)")
            case "sum":
                yield f"if not {x}_null:"
                yield f"    {_set('record', accumulator, f'{value} + {x}')}"
                yield f"    {_set_null('record', accumulator, '0')}"
            case "min" | "max":
                yield f"held = {value}"
                yield f"if not {x}_null and ({_null('record', accumulator)} or {_better(accumulator, x, 'held')}):"
                yield f"    {_set('record', accumulator, x)}"
                yield f"    {_set_null('record', accumulator, '0')}"

    def started(self, accumulator: Accumulator) -> Iterator[str]:
        """Lines that begin an accumulator with the first row."""
        x = f"x{accumulator.column.number}"
        if accumulator.fold == "count":
            yield _set("record", accumulator, f"0 if {x}_null else 1")
            yield _set_null("record", accumulator, "0")
        else:
            zero = "0.0" if accumulator.is_real else "0"
            yield _set("record", accumulator, f"{zero} if {x}_null else {x}")
            yield _set_null("record", accumulator, f"{x}_null")

    def found(self) -> Iterator[str]:
        """Lines that write a match down."""
        yield f"place = get(header, MATCHES) * {self.layout.found_size}"
        yield "put(found, place + FOUND_ROW, row)"
        yield "put(found, place + FOUND_START, get(records, record + START))"
        yield "put(found, place + FOUND_ID, get(records, record + FIRST_ID))"
        yield "put(found, place + FOUND_COUNT, seen + 1 - get(records, record + BEGUN))"
        first = RECORD_WORDS + self.words
        yield f"for word in range({self.layout.found_size - FOUND_WORDS}):"
        yield f"    put(found, place + {FOUND_WORDS} + word, get(records, record + {first} + word))"
        yield "put(header, MATCHES, get(header, MATCHES) + 1)"


def _array(name: str, is_real: bool) -> str:
    return f"{name}_reals" if is_real else f"{name}s"


def _value(name: str, accumulator: Accumulator) -> str:
    return f"get({_array(name, accumulator.is_real)}, {name} + {accumulator.place})"


def _null(name: str, accumulator: Accumulator) -> str:
    return f"get({name}s, {name} + {accumulator.place + 1}) != 0"


def _set(name: str, accumulator: Accumulator, value: str) -> str:
    return f"put({_array(name, accumulator.is_real)}, {name} + {accumulator.place}, {value})"


def _set_null(name: str, accumulator: Accumulator, value: str) -> str:
    return f"put({name}s, {name} + {accumulator.place + 1}, {value})"


def _is_cheap(expression: Expression) -> bool:
    return all(not isinstance(part, Operation) or part.name in _CHEAP for part in walk(expression))


def _better(accumulator: Accumulator, x: str, held: str) -> str:
    """Whether a value is less (min) or greater (max); NaN is greater than every number, as in Spark."""
    if accumulator.fold == "min":
        return f"{x} < {held}" + (f" or ({held} != {held} and {x} == {x})" if accumulator.is_real else "")
    return f"{x} > {held}" + (f" or ({x} != {x} and {held} == {held})" if accumulator.is_real else "")
