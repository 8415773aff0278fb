"""The operators of docs/semantics.md, sections 3 and 4, one class each: lists and loops, epoch by epoch.

A node of the graph is a function from the streams of its operands to its own stream. So each node is run over all its
input before its parents are: no parent ever changes what a node below it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from estream.spec.event_expression import Apply
from tests.reference.masks import Conjuncts, holds
from tests.reference.occurrences import Occurrence, canonical, constituents_of, without_duplicates


@dataclass(frozen=True)
class Settings:
    """What a composite event gives to every node of its expression; `last_tick` is T, the end of the input."""

    context: str
    semantics: str
    within: int | None
    last_tick: int


@dataclass(eq=False)
class Waiting:
    """An initiator in the list L, with what its window recorded."""

    occurrence: Occurrence
    middles: list[Occurrence] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)


class Operator:
    """What all operators have: the list L, the epochs, W, the pairs and the contexts."""

    def __init__(self, node: Apply, settings: Settings, asked: Conjuncts) -> None:
        self.node, self.settings, self.asked = node, settings, asked
        self.context, self.duration = settings.context, node.duration or 0
        self.waiting: list[Waiting] = []
        self.now = self.turn = 0
        self.signalled: list[Occurrence] = []

    def run(self, streams: Sequence[Sequence[Occurrence]]) -> list[Occurrence]:
        """The stream of this node, from those of its operands; conjuncts of one operand are asked first."""
        inputs = [
            [one for one in canonical(stream) if holds(self.asked.alone.get(position, []), one.constituents)]
            for position, stream in enumerate(streams)
        ]
        epochs = {one.epoch for stream in inputs for one in stream}
        while epochs or self.due():
            epoch = min(epochs | {(time, 0) for time in self.due()})
            self.now, self.turn = epoch
            epochs.discard(epoch)
            self.expire()
            self.act(*([one for one in stream if one.epoch == epoch] for stream in inputs))
        return without_duplicates(self.signalled)

    def act(self, *inputs: list[Occurrence]) -> None:
        """One epoch: what each operand gave, in canonical order."""
        raise NotImplementedError

    def due(self) -> set[int]:
        """The times at which a timer of this node acts."""
        return set()

    def expire(self) -> None:
        """What waits longer than W is dropped at the beginning of the epoch, before anything acts."""
        self.waiting = [one for one in self.waiting if self.fits(self.now - one.occurrence.start)]

    def fits(self, length: int) -> bool:
        """Whether this is not longer than W."""
        return self.settings.within is None or length <= self.settings.within

    def install(self, initiator: Occurrence) -> None:
        """At the end of L, if it is not longer than W; in `recent` it replaces the one waiting in any case."""
        if self.context == "recent":
            self.waiting = []
        if self.fits(initiator.end - initiator.start):
            self.waiting.append(Waiting(initiator))

    def drop(self, gone: Iterable[Waiting]) -> None:
        """Takes these out of L."""
        dropped = list(gone)
        self.waiting = [one for one in self.waiting if one not in dropped]

    def before(self, x: Occurrence, y: Occurrence) -> bool:
        """`x before y`."""
        return x.end < (y.start if self.settings.semantics == "interval" else y.end)

    def touch(self, initiator: Occurrence, other: Occurrence, position: int) -> bool:
        """Whether the conjuncts of the initiator with the operand at this position hold of the two."""
        return holds(self.asked.paired.get(position, []), constituents_of((initiator, other)))

    def eligible(self, other: Occurrence, position: int, *, ordered: bool = True) -> list[Waiting]:
        """C: the members of L that are before the other one, fit into W with it, and touch it."""
        return [
            one
            for one in self.waiting
            if (self.before(one.occurrence, other) or not ordered)
            and self.fits(other.end - min(one.occurrence.start, other.start))
            and self.touch(one.occurrence, other, position)
        ]

    def chosen(self, eligible: list[Waiting]) -> list[list[Waiting]]:
        """Which members of C are detected together, by context."""
        if self.context == "cumulative":
            return [eligible] if eligible else []
        single = [[one] for one in eligible]
        return single[:1] if self.context == "chronicle" else single

    def closed(self, terminator: Occurrence, position: int) -> list[Waiting]:
        """The windows of A and P that a terminator closes: W is not asked."""
        touched = [
            one
            for one in self.waiting
            if self.before(one.occurrence, terminator) and self.touch(one.occurrence, terminator, position)
        ]
        return touched[:1] if self.context == "chronicle" else touched

    def detect(self, *parts: Occurrence, start: int | None = None, **attrs: Any) -> None:
        """Signals an occurrence that ends now, if W and what is asked of the finished one admit it."""
        begin = min(part.start for part in parts) if start is None else start
        constituents = constituents_of(parts)
        if self.fits(self.now - begin) and holds(self.asked.finished, constituents):
            self.signalled.append(Occurrence(begin, self.now, constituents, attrs, self.turn))


def occurrences(group: Iterable[Waiting]) -> list[Occurrence]:
    """The initiators of a group, in the order of L."""
    return [one.occurrence for one in group]


class Or(Operator):
    """Every occurrence of every side."""

    def act(self, *inputs: list[Occurrence]) -> None:
        for side in inputs:
            for one in side:
                self.detect(one)


class And(Operator):
    """Both sides, in any order. `waiting` is the list of the side that an occurrence meets; the other is set aside."""

    def __init__(self, node: Apply, settings: Settings, asked: Conjuncts) -> None:
        super().__init__(node, settings, asked)
        self.sides: list[list[Waiting]] = [[], []]

    def act(self, *inputs: list[Occurrence]) -> None:
        for side in (0, 1):
            for x in inputs[side]:
                self.meet(x, side)

    def meet(self, x: Occurrence, side: int) -> None:
        """x of one side against the list of the other."""
        self.waiting = self.sides[1 - side]
        self.expire()
        eligible = self.eligible(x, 1, ordered=False)
        for group in self.chosen(eligible):
            self.detect(*occurrences(group), x)
            if self.context not in ("unrestricted", "recent"):
                self.drop(group)
        self.sides[1 - side] = self.waiting
        if self.context in ("unrestricted", "recent") or not eligible:
            self.waiting = self.sides[side]
            self.install(x)
            self.sides[side] = self.waiting


class InSequence(Operator):
    """I ; T: the table of section 3."""

    def act(self, *inputs: list[Occurrence]) -> None:
        initiators, terminators = inputs
        self.terminate(terminators, 1)
        for i in initiators:
            self.install(i)

    def terminate(self, terminators: list[Occurrence], position: int) -> None:
        """Each t with the eligible initiators."""
        for t in terminators:
            for group in self.chosen(self.eligible(t, position)):
                self.detect(*occurrences(group), t)
                if self.context not in ("unrestricted", "recent"):
                    self.drop(group)


class Not(InSequence):
    """not(N)[I, T]: an n drops the initiators before it and keeps those of its epoch out."""

    def act(self, *inputs: list[Occurrence]) -> None:
        initiators, negations, terminators = inputs
        for n in negations:
            begin = n.start if self.settings.semantics == "interval" else n.end
            self.drop([o for o in self.waiting if o.occurrence.end <= begin and self.touch(o.occurrence, n, 1)])
        self.terminate(terminators, 2)
        for i in initiators:
            if not any(self.touch(i, n, 1) for n in negations):
                self.install(i)


class Aperiodic(Operator):
    """A(I, M, T): each m in an open window."""

    def act(self, *inputs: list[Occurrence]) -> None:
        initiators, middles, terminators = inputs
        for m in middles:
            for group in self.chosen(self.eligible(m, 1)):
                self.detect(*occurrences(group), m)
        for t in terminators:
            self.drop(self.closed(t, 2))
        for i in initiators:
            self.install(i)


class AperiodicCollected(Operator):
    """A*(I, M, T): windows record each m, t signals and closes."""

    def act(self, *inputs: list[Occurrence]) -> None:
        initiators, middles, terminators = inputs
        for m in middles:
            for one in self.waiting:
                if self.before(one.occurrence, m) and self.touch(one.occurrence, m, 1):
                    one.middles.append(m)
        for t in terminators:
            for group in self.chosen(self.eligible(t, 2)):
                union = canonical({m for one in group for m in one.middles})
                self.detect(*occurrences(group), *union, t)
                self.drop(group)
        for i in initiators:
            self.install(i)


class Periodic(Operator):
    """P(I, d, T): a point at every tick of an open window."""

    def due(self) -> set[int]:
        return {tick for one in self.waiting if (tick := self.next_tick(one)) <= self.settings.last_tick}

    def next_tick(self, window: Waiting) -> int:
        """When the window ticks next."""
        return window.occurrence.end + (len(window.ticks) + 1) * self.duration

    def act(self, *inputs: list[Occurrence]) -> None:
        initiators, terminators = inputs
        if self.now <= self.settings.last_tick:
            for one in self.waiting:
                if self.next_tick(one) == self.now:
                    one.ticks.append(self.now)
                    self.tick(one)
        for t in terminators:
            self.terminate(t)
        for i in initiators:
            self.install(i)

    def tick(self, window: Waiting) -> None:
        """Signals a tick."""
        self.detect(window.occurrence, start=self.now, tick=len(window.ticks))

    def terminate(self, t: Occurrence) -> None:
        """Closes windows."""
        self.drop(self.closed(t, 1))


class PeriodicCollected(Periodic):
    """P*(I, d, T): windows record their ticks, t signals and closes."""

    def tick(self, window: Waiting) -> None:
        """The window has recorded it; nothing is signalled."""

    def terminate(self, t: Occurrence) -> None:
        for group in self.chosen(self.eligible(t, 1)):
            self.detect(*occurrences(group), t, ticks=sorted(tick for one in group for tick in one.ticks))
            self.drop(group)


class Plus(Operator):
    """E + d: a point, d after e."""

    def due(self) -> set[int]:
        return {one.occurrence.end + self.duration for one in self.waiting}

    def act(self, *inputs: list[Occurrence]) -> None:
        due = [one for one in self.waiting if one.occurrence.end + self.duration == self.now]
        if self.context == "cumulative" and due:
            self.detect(*occurrences(self.waiting), start=self.now)
            self.waiting = []
        else:
            for one in due:
                self.detect(one.occurrence, start=self.now)
            self.drop(due)
        for e in inputs[0]:
            self.install(e)


class Absent(Operator):
    """absent(I, N, d): i, and no n until the deadline."""

    def due(self) -> set[int]:
        return {one.occurrence.end + self.duration for one in self.waiting}

    def act(self, *inputs: list[Occurrence]) -> None:
        initiators, negations = inputs
        for n in negations:
            self.drop(self.closed(n, 1))
        due = [one for one in self.waiting if one.occurrence.end + self.duration == self.now]
        for one in due:
            self.detect(one.occurrence)
        self.drop(due)
        for i in initiators:
            self.install(i)


class Times(Operator):
    """times(n, E)."""

    def act(self, *inputs: list[Occurrence]) -> None:
        for e in inputs[0]:
            if self.fits(e.end - e.start):
                self.waiting.append(Waiting(e))
            if len(self.waiting) == self.node.count:
                self.detect(*occurrences(self.waiting))
                self.waiting = [] if self.context in ("chronicle", "cumulative") else self.waiting[1:]


OPERATORS: dict[str, type[Operator]] = {
    "or": Or,
    "and": And,
    ";": InSequence,
    "not": Not,
    "A": Aperiodic,
    "A*": AperiodicCollected,
    "P": Periodic,
    "P*": PeriodicCollected,
    "+": Plus,
    "absent": Absent,
    "times": Times,
}
