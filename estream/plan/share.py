"""Fifth pass: the nodes of the event graph, equal ones once, in topological order."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from estream.plan.draft import Definition, Draft, Key, Part, Use, Variant
from estream.plan.leaves import constituents, leaves
from estream.plan.model import Node, Subscription
from estream.plan.pattern import partition_of, rows_event
from estream.spec.checked import CheckedEvent
from estream.spec.event_expression import Apply, EventExpression, Name, to_text
from estream.spec.expression_text import to_text as expression_text
from estream.spec.model import PatternEvent


def share(draft: Draft) -> Draft:
    """Nodes for everything subscribed to. What nobody listens to, directly or through others, has none."""
    if draft.problems:
        return draft
    graph = _Graph(draft)
    subscriptions = tuple(_subscribe(graph, wanted) for wanted in draft.wanted)
    events = tuple((event, node) for ((event, context), _), node in graph.made.items() if context is None)
    return replace(draft, nodes=tuple(graph.nodes), subscriptions=subscriptions, events=events)


def signature(*facts: Any) -> str:
    """What state is kept under: the same for equal facts in every run and version."""
    return hashlib.sha256(json.dumps(facts, ensure_ascii=False).encode()).hexdigest()[:16]


def _subscribe(graph: _Graph, wanted: Subscription) -> Subscription:
    event = graph.draft.checked.events[wanted.event]
    if event.when is not None:
        return replace(wanted, node=graph.definition((wanted.event, wanted.context), ""))
    return replace(wanted, node=graph.leaf(wanted.event, (), ""))


@dataclass
class _Graph:
    """The nodes made so far. `home` is the partitioning a node lives in, which tells temporal nodes apart."""

    draft: Draft
    nodes: list[Node] = field(default_factory=list)
    by_signature: dict[str, int] = field(default_factory=dict)
    made: dict[tuple[Variant, str], int] = field(default_factory=dict)

    def definition(self, variant: Variant, home: str) -> int:
        """The node that detects an event."""
        definition = self.draft.definitions[variant]
        # What is only temporal is the same in every partition: it lives where it is used.
        here = home if not _has_rows(self.draft, definition) else _home(definition)
        if (variant, here) not in self.made:
            self.made[variant, here] = self._part(definition, definition.root, here)
        return self.made[variant, here]

    def leaf(self, event: str, key: Key, home: str) -> int:
        """The node that gives the occurrences of a primitive, temporal or pattern event."""
        found = self.draft.checked.events[event]
        if isinstance(found.spec, PatternEvent):
            return self._pattern(event, found, found.spec)
        operator: Literal["temporal", "leaf"] = "temporal" if found.kind == "temporal" else "leaf"
        facts = (operator, event, home if operator == "temporal" else key)
        draft = Node(0, operator, (), signature(*facts), 0, 0, event, key, leaves=(event,), text=event)
        return self._add(draft)

    def _pattern(self, event: str, found: CheckedEvent, spec: PatternEvent) -> int:
        """The node of a pattern event over the leaf of its rows."""
        columns = self.draft.checked.queries[found.query or str(spec.on)].columns
        key, source = partition_of(spec, columns), rows_event(event)
        leaf = Node(0, "leaf", (), signature("leaf", source, key), 0, 0, source, key, leaves=(source,), text=source)
        rows = self._add(leaf)
        signed = signature("pattern", event, key, *_matching(found, spec))
        return self._add(Node(0, "pattern", (rows,), signed, 0, 0, event, key, leaves=(event,), text=event))

    def _part(self, definition: Definition, part: Part, home: str) -> int:
        operands = tuple(
            self._use(definition, each, home) if isinstance(each, Use) else self._part(definition, each, home)
            for each in part.operands
        )
        # Contexts and `before` do not matter to `or`: without them more nodes are equal.
        plain = part.operator == "or"
        node = Node(
            0, part.operator, operands, "", 0, 0,
            context="recent" if plain else definition.context,
            semantics="interval" if plain else definition.semantics,
            within=definition.within, duration=part.duration, count=part.count, conjuncts=part.conjuncts,
            leaves=constituents(self.draft, part), text=_shown(definition, part),
        )  # fmt: skip
        return self._add(replace(node, signature=self._sign(node)))

    def _use(self, definition: Definition, use: Use, home: str) -> int:
        if (use.event, None) not in self.draft.definitions:
            key = definition.keys.get(use.event, ())
            leaf = self.leaf(use.event, key, home)
            is_pattern = self.nodes[leaf].operator == "pattern"
            return self._relay(use, ((use.event, key),), leaf) if is_pattern else leaf
        node = self.definition((use.event, None), home)
        return node if use.relay is None else self._relay(use, use.relay, node)

    def _relay(self, use: Use, keys: tuple[tuple[str, Key], ...], source: int) -> int:
        common = {key for _, key in keys}
        below = self.nodes[source]
        node = Node(
            0, "relay", (source,), signature("relay", below.signature, keys), 0, 0, use.event,
            key=common.pop() if len(common) == 1 else (), keys=keys, leaves=below.leaves, text=use.event,
        )  # fmt: skip
        return self._add(node)

    def _sign(self, node: Node) -> str:
        children = [self.nodes[operand].signature for operand in node.operands]
        asked = sorted((each.kind, each.operands, expression_text(each.expression)) for each in node.conjuncts)
        settings = (node.context, node.semantics, node.within, node.duration, node.count)
        return signature(node.operator, children, *settings, asked)

    def _add(self, node: Node) -> int:
        if node.signature not in self.by_signature:
            self.by_signature[node.signature] = len(self.nodes)
            self.nodes.append(replace(node, number=len(self.nodes)))
        return self.by_signature[node.signature]


def _matching(event: CheckedEvent, spec: PatternEvent) -> tuple[Any, ...]:
    """What the partial matches of a pattern depend on."""
    within = spec.within.microseconds if spec.within else None
    predicates = [(name, expression_text(each)) for name, each in (*event.define, *event.output)]
    return " ".join(spec.pattern.split()), predicates, [*spec.partition_by], within, spec.skip


def _has_rows(draft: Draft, definition: Definition) -> bool:
    return any(not draft.is_temporal(leaf) for leaf in leaves(definition.root, draft.leaves_of).every)


def _home(definition: Definition) -> str:
    """A name for the partitioning: the key if it is the same for all leaves."""
    keys = set(definition.keys.values())
    return json.dumps(sorted(keys) if len(keys) == 1 else sorted(definition.keys.items())) if any(keys) else ""


def _shown(definition: Definition, part: Part) -> str:
    """The part for people; what the environment put into the expression stays out of sight."""
    return definition.text.shown if definition.text.hidden else to_text(_expression(part))


def _expression(part: Part | Use) -> EventExpression:
    if isinstance(part, Use):
        return Name(part.event)
    operands = tuple(map(_expression, part.operands))
    if part.operator == "or" and len(operands) == 1:
        return operands[0]
    return Apply(part.operator, operands, part.duration, part.count)
