"""The source of the function that matches one pattern, for numba to compile.

The function goes through the rows of a step in their order. For each row it moves the partial matches of the row's
partition on, the oldest first, then lets the row begin one. It stops where it needs more room and says at which row.
"""

from __future__ import annotations

from collections.abc import Iterator

from estream.event import scalar
from estream.event.pattern_kernel import RECORD_WORDS
from estream.event.pattern_layout import ANY_ROW, Accumulator, Layout
from estream.event.pattern_transitions import meets, reach_lines, words_of_set
from estream.spec.expression import Aggregate, Attribute, Literal

_WORDS = (
    *("NONE", "FREE", "USED", "MATCHES", "HEAD", "SEEN", "LIVE", "LAST_ROW", "NEXT", "START", "FIRST_ID", "BEGUN"),
    *("FOUND_ROW", "FOUND_START", "FOUND_ID", "FOUND_COUNT"),
)
HEADER = f'''"""A pattern, made by EStream."""

from numba import njit, types

from estream.event.pattern_kernel import append, drop, drop_all, give_back, take
from estream.event.pattern_kernel import {", ".join(_WORDS)}
{scalar.PREAMBLE}
READ = types.Array(types.int64, 1, "C", readonly=True)
READ_REAL = types.Array(types.float64, 1, "C", readonly=True)
READ_NULL = types.Array(types.boolean, 1, "C", readonly=True)
WORDS = types.Array(types.int64, 1, "C")
REALS = types.Array(types.float64, 1, "C")
'''
_STATE = ("header", "partitions", "partition_reals", "records", "record_reals", "found", "found_reals", "previous")
_STATE_TYPES = "WORDS, WORDS, REALS, WORDS, REALS, WORDS, REALS, WORDS"


def source_of(layout: Layout, with_rows: bool) -> str:
    """The module of a pattern: `run(row, offset, keys, times, ids, texts, <columns>, <state>)`.

    `offset` is the number of the first row among those kept; each column is its values and its null flags.
    """
    return _Source(layout, with_rows).module()


def _indented(lines: Iterator[str] | list[str], depth: int = 1) -> Iterator[str]:
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
            "@njit(error_model='numpy')\n" + scalar.to_source(expression, f"is_{name}", self.arguments[name])
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
        yield f"capacity, room = len(records) // {self.layout.record_size}, len(found) // {self.layout.found_size}"
        for place in self.layout.texts.values():
            yield f"t{place} = texts[{place}]"
        yield "while row < len(keys):"
        yield "    key = keys[row]"
        yield "    if key < 0:"
        yield "        row += 1"
        yield "        continue"
        yield from _indented(self.one_row())
        yield "    row += 1"
        yield "return row"

    def one_row(self) -> Iterator[str]:
        yield f"part = key * {self.layout.partition_size}"
        yield "full = header[FREE] == NONE and header[USED] == capacity"
        yield f"if full or header[MATCHES] + {'partitions[part + LIVE] + 1' if self.overlap else '1'} > room:"
        yield "    break"
        yield "now, seen = times[row], partitions[part + SEEN]"
        yield from self.row_values()
        if self.prunes:
            yield " = ".join([*(f"covered{word}" for word in range(self.words)), "0"])
        yield "at, before, complete = partitions[part + HEAD], NONE, False"
        if self.with_rows:
            yield "previous[offset + row] = partitions[part + LAST_ROW] if at != NONE else NONE"
        yield "while at != NONE:"
        yield from _indented(self.moved_on())
        yield "if complete:"
        yield f"    drop_all(header, partitions, records, {self.layout.record_size}, part)"
        yield "else:"
        yield from _indented(self.begun())
        yield "partitions[part + SEEN] = seen + 1"
        if self.with_rows:
            yield "partitions[part + LAST_ROW] = offset + row"
        for expression, place in self.layout.last.items():
            column = self.layout.columns[expression]
            yield f"{_array('partition', column.is_real)}[part + {place}] = x{column.number}"
            yield f"partitions[part + {place + 1}] = x{column.number}_null"

    def row_values(self) -> Iterator[str]:
        for column in self.columns:
            name = f"c{column.number}"
            yield f"x{column.number}, x{column.number}_null = {name}[row], {name}_null[row]"
        for expression, place in self.layout.last.items():
            column = self.layout.columns[expression]
            yield f"l{column.number} = {_array('partition', column.is_real)}[part + {place}]"
            yield f"l{column.number}_null = partitions[part + {place + 1}] != 0"

    def moved_on(self) -> Iterator[str]:
        """One partial match takes the row in, or ends."""
        size = self.layout.record_size
        yield f"record = at * {size}"
        yield "following = records[record + NEXT]"
        for word in range(self.words):
            yield f"s{word} = records[record + {RECORD_WORDS + word}]"
        yield from reach_lines(self.automaton, self.words)
        yield from self.held(range(len(self.automaton.predicates)), "r")
        gone = " | ".join(f"s{word}" for word in range(self.words)) + " == 0"
        if self.pattern.within is not None:
            gone = f"now - records[record + START] > {self.pattern.within} or {gone}"
        yield f"if {gone}:"
        yield f"    drop(header, partitions, records, {size}, part, at, before)"
        yield "else:"
        for accumulator in self.layout.accumulators.values():
            yield from _indented(self.folded(accumulator))
        yield f"    if {meets('s', self.automaton.final, self.words)}:"
        yield from _indented(self.found(), 2)
        if self.overlap:
            yield f"        drop(header, partitions, records, {size}, part, at, before)"
        else:
            yield "        complete = True"
            yield "        break"
        yield "    else:"
        yield from _indented(self.kept_states(), 2)
        yield "        before = at"
        yield "at = following"

    def begun(self) -> Iterator[str]:
        """The row begins a partial match."""
        size, first = self.layout.record_size, self.automaton.first
        for word, bits in enumerate(words_of_set(first, self.words)):
            yield f"r{word} = {bits}"
        yield from self.held([state for state in range(len(self.automaton.predicates)) if first >> state & 1], "r")
        yield f"if {' | '.join(f's{word}' for word in range(self.words))} != 0:"
        yield f"    at = take(header, records, {size})"
        yield f"    record = at * {size}"
        yield "    records[record + START] = now"
        yield "    records[record + FIRST_ID] = ids[row]"
        yield "    records[record + BEGUN] = seen"
        for accumulator in self.layout.accumulators.values():
            yield from _indented(self.started(accumulator))
        yield f"    if {meets('s', self.automaton.final, self.words)}:"
        yield from _indented(self.found(), 2)
        yield f"        give_back(header, records, {size}, at)"
        if not self.overlap:
            yield f"        drop_all(header, partitions, records, {size}, part)"
        yield "    else:"
        yield from _indented(self.kept_states(), 2)
        yield f"        append(partitions, records, {size}, part, at)"

    def kept_states(self) -> Iterator[str]:
        for word in range(self.words):
            yield f"records[record + {RECORD_WORDS + word}] = s{word}"
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
                yield f"if {meets(reached, positive | negative, self.words)}:"
                yield f"    if is_{name}({self.asked(name)})[0]:"
                yield from _indented(self.hold(positive), 2)
                if negative:
                    yield "    else:"
                    yield from _indented(self.hold(negative), 2)
        for word in range(self.words):
            yield f"s{word} = {reached}{word} & h{word}" + (f" & ~covered{word}" if self.prunes else "")

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
                return "seen - records[record + BEGUN], False"
            case Aggregate(name="last", operand=operand) if operand is not None:
                number = self.layout.column(operand).number
                return f"l{number}, l{number}_null"
        values = [_value("record", accumulator) for accumulator in self.layout.of_aggregate(argument)]
        nulls = [f"records[record + {each.place + 1}] != 0" for each in self.layout.of_aggregate(argument)]
        return (
            f"{values[0]} / max({values[1]}, 1), {nulls[0]}" if argument.name == "avg" else f"{values[0]}, {nulls[0]}"
        )

    def folded(self, accumulator: Accumulator) -> Iterator[str]:
        """Lines that take the row into an accumulator."""
        x, held = f"x{accumulator.column.number}", _value("record", accumulator)
        null = f"records[record + {accumulator.place + 1}]"
        if accumulator.fold == "first":
            return
        yield f"if not {x}_null:"
        match accumulator.fold:
            case "count":
                yield f"    {held} += 1"
            case "sum":
                yield f"    {held} += {x}"
                yield f"    {null} = 0"
            case "min" | "max":
                yield f"    if {null} != 0 or {_better(accumulator, x, held)}:"
                yield f"        {held} = {x}"
                yield f"        {null} = 0"

    def started(self, accumulator: Accumulator) -> Iterator[str]:
        """Lines that begin an accumulator with the first row."""
        column, held = accumulator.column, _value("record", accumulator)
        null = f"records[record + {accumulator.place + 1}]"
        if accumulator.fold == "count":
            yield f"{held} = 0 if x{column.number}_null else 1"
            yield f"{null} = 0"
        else:
            zero = "0.0" if column.is_real else "0"
            yield f"{held} = {zero} if x{column.number}_null else x{column.number}"
            yield f"{null} = x{column.number}_null"

    def found(self) -> Iterator[str]:
        """Lines that write a match down."""
        yield f"place = header[MATCHES] * {self.layout.found_size}"
        yield "found[place + FOUND_ROW] = row"
        yield "found[place + FOUND_START] = records[record + START]"
        yield "found[place + FOUND_ID] = records[record + FIRST_ID]"
        yield "found[place + FOUND_COUNT] = seen + 1 - records[record + BEGUN]"
        for accumulator, place in self.layout.found.items():
            yield f"{_array('found', accumulator.is_real)}[place + {place}] = {_value('record', accumulator)}"
            yield f"found[place + {place + 1}] = records[record + {accumulator.place + 1}]"
        yield "header[MATCHES] += 1"


def _array(name: str, is_real: bool) -> str:
    plural = {"found": "found"}.get(name, f"{name}s")
    return f"{name}_reals" if is_real else plural


def _value(name: str, accumulator: Accumulator) -> str:
    return f"{_array(name, accumulator.is_real)}[{name} + {accumulator.place}]"


def _better(accumulator: Accumulator, x: str, held: str) -> str:
    """Whether a value is less (min) or greater (max); NaN is greater than every number, as in Spark."""
    if accumulator.fold == "min":
        return f"{x} < {held}" + (f" or ({held} != {held} and {x} == {x})" if accumulator.is_real else "")
    return f"{x} > {held}" + (f" or ({x} != {x} and {held} == {held})" if accumulator.is_real else "")
