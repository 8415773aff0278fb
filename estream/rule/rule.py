"""Rules as they run: made from what was checked and planned, with callbacks found and actions built."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from estream.errors import EStreamError, Problem
from estream.plan.model import Plan
from estream.rule.action import Action, Compute, Services, build_action, callback_action
from estream.rule.condition import value_of
from estream.rule.detection import Detection
from estream.rule.layout import Layout, layout_of
from estream.rule.registry import Callback, CallbackError, find, require_signature
from estream.rule.row import table_of
from estream.rule.store import Coupling, RuleRecord
from estream.settings import RuleSettings
from estream.spec import model
from estream.spec.check_events import ticks_of
from estream.spec.checked import Checked, CheckedRule
from estream.spec.expression import Expression
from estream.spec.expression_parser import parse_expression
from estream.spec.type_check import Scope, check_types
from estream.spec.type_rules import cast
from estream.text import Text


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that can fire. Times are microseconds."""

    name: str
    event: str
    context: str | None
    version: str
    definition: str
    """As JSON, with nothing secret in it."""
    condition: Expression | None
    condition_text: str | None
    test: Callback | None
    """A condition that Python decides."""
    actions: tuple[Action, ...]
    priority: int
    coupling: Coupling
    throttle: int | None
    attempts: int
    backoff: int
    timeout: int
    partition: Mapping[str, tuple[str, ...]]
    """Leaf event to the attributes that make the partition of its event."""

    @property
    def is_remote(self) -> bool:
        """Whether an action of it reaches others."""
        return any(action.is_remote for action in self.actions)

    @property
    def record(self) -> RuleRecord:
        """What the history keeps of it."""
        return RuleRecord(
            self.name, self.version, self.definition, self.condition_text, self.event, self.context, self.priority,
            self.coupling,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of a CEQ file, those that fire, by falling priority, and what their detections look like."""

    ceq: str
    rules: Mapping[str, Rule]
    layout: Layout
    raised: Mapping[str, tuple[str, ...]]
    """Events that rules can raise, and their attributes."""

    def on(self, event: str, context: str | None) -> Sequence[Rule]:
        """The rules of an event, by falling priority."""
        return [rule for rule in self.rules.values() if (rule.event, rule.context) == (event, context)]

    def close(self) -> None:
        """End what actions keep open."""
        for rule in self.rules.values():
            for action in rule.actions:
                action.close()


def build_rules(
    checked: Checked,
    plan: Plan,
    settings: RuleSettings,
    services: Services,
    callbacks: Mapping[str, Sequence[Callback]] | None = None,
) -> RuleSet:
    """The rules that are enabled; EStreamError tells everything that is wrong with their callbacks.

    `callbacks` are functions registered in code: by a rule's name they are further actions of the rule, by an event's
    name a rule of their own.
    """
    layout = layout_of(plan)
    problems: list[Problem] = []
    builder = _Builder(checked, plan, settings, services, layout, problems)
    registered = dict(callbacks or {})
    rules = [builder.rule(one, registered.pop(str(one.name), ())) for one in checked.rules.values() if one.spec.enabled]
    rules += [builder.of_event(event, functions) for event, functions in registered.items()]
    if problems:
        raise EStreamError(problems)
    ordered = sorted(rules, key=lambda rule: -rule.priority)
    raised = {name: tuple(one.columns or ()) for name, one in checked.events.items() if one.kind == "raised"}
    return RuleSet(plan.name, {rule.name: rule for rule in ordered}, layout, raised)


def check_callbacks(checked: Checked, services: Services) -> list[Problem]:
    """What is wrong with the callbacks of the rules, enabled or not: imports, marks, signatures."""
    problems: list[Problem] = []
    for rule in checked.rules.values():
        for text, role in _callbacks(rule):
            try:
                find(services.rules, text, "condition" if role == "condition" else "action")
            except CallbackError as error:
                problems.append(text.problem(f"rule '{rule.name}': {role}: {error}"))
    return problems


def _callbacks(rule: CheckedRule) -> Iterator[tuple[Text, str]]:
    if isinstance(rule.spec.condition, model.PythonCondition):
        yield rule.spec.condition.python, "condition"
    for action in rule.spec.actions:
        if isinstance(action, model.PythonAction):
            yield action.python, "python"


@dataclass(frozen=True, slots=True)
class _Builder:
    checked: Checked
    plan: Plan
    settings: RuleSettings
    services: Services
    layout: Layout
    problems: list[Problem]

    def rule(self, rule: CheckedRule, extra: Sequence[Callback]) -> Rule:
        spec = rule.spec
        composite = self.checked.events[spec.on].kind == "composite"
        context = spec.context if composite else None
        definition = spec.model_dump_json(by_alias=True, exclude_defaults=True)
        actions = [self.action(rule, action) for action in spec.actions]
        actions += [self.registered(function, rule.name) for function in extra]
        backoff = spec.retry.backoff or self.settings.backoff
        given = "attempts" in spec.retry.model_fields_set and "retry" in spec.model_fields_set
        return Rule(
            name=str(rule.name),
            event=str(spec.on),
            context=context,
            version=_version(definition),
            definition=definition,
            condition=rule.condition,
            condition_text=_condition_text(spec),
            test=self.test(rule),
            actions=tuple(action for action in actions if action is not None),
            priority=spec.priority,
            coupling=spec.coupling,
            throttle=spec.throttle.microseconds if spec.throttle else None,
            attempts=spec.retry.attempts if given else self.settings.attempts,
            backoff=backoff.microseconds,
            timeout=(spec.timeout or self.settings.timeout).microseconds,
            partition=_partition(self.plan, str(spec.on), context),
        )

    def of_event(self, event: str, functions: Sequence[Callback]) -> Rule:
        """A rule for functions that were registered on an event."""
        name = f"on_{event}"
        actions = (self.registered(function, name) for function in functions)
        definition = json.dumps({"python": [_name(one) for one in functions]})
        return Rule(
            name, event, None, _version(definition), definition, None, None, None,
            tuple(action for action in actions if action is not None), 1, "immediate", None, self.settings.attempts,
            self.settings.backoff.microseconds, self.settings.timeout.microseconds, _partition(self.plan, event, None),
        )  # fmt: skip

    def action(self, rule: CheckedRule, spec: model.Action) -> Action | None:
        try:
            return build_action(spec, self.services, self.compute(rule, spec))
        except CallbackError as error:
            text = spec.python if isinstance(spec, model.PythonAction) else Text(rule.name)
            self.problems.append(text.problem(f"rule '{rule.name}': python: {error}"))
            return None

    def registered(self, function: Callback, rule: str) -> Action | None:
        name = _name(function)
        try:
            require_signature(function, name)
        except CallbackError as error:
            self.problems.append(Text(rule).problem(f"rule '{rule}': {error}"))
        return callback_action(function, name, self.services)

    def test(self, rule: CheckedRule) -> Callback | None:
        given = rule.spec.condition
        if not isinstance(given, model.PythonCondition):
            return None
        try:
            return find(self.services.rules, given.python, "condition")
        except CallbackError as error:
            self.problems.append(given.python.problem(f"rule '{rule.name}': condition: {error}"))
            return None

    def compute(self, rule: CheckedRule, spec: model.Action) -> Compute:
        """What gives the attributes of a raised event: expressions over the detection, as the event's types."""
        if not isinstance(spec, model.RaiseAction):
            return lambda detection: {}
        event = self.checked.events[rule.spec.on]
        ticks = ticks_of(event.when)
        events = {leaf: self.checked.events[leaf].columns for leaf in event.leaves}
        scope = Scope(ticks, {**events, event.name: ticks} if ticks else events, "leaves")
        wanted = self.checked.events[spec.raise_.event].columns or {}
        typed = {
            str(name): cast(check_types(parse_expression(text), scope, text)[0], wanted[name])
            for name, text in spec.raise_.attributes.items()
        }
        layout = self.layout

        def attributes(detection: Detection) -> Mapping[str, Any]:
            table = table_of(layout, detection.detected)
            return {name: value_of(expression, layout, table)[0].as_py() for name, expression in typed.items()}

        return attributes


def _name(function: Callback) -> str:
    """What a function is called, also one that has no name of its own, as a partial call."""
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"


def _version(definition: str) -> str:
    return hashlib.blake2b(definition.encode("utf-8"), digest_size=8).hexdigest()


def _condition_text(spec: model.Rule) -> str | None:
    if isinstance(spec.condition, model.PythonCondition):
        return f"python: {spec.condition.python}"
    return spec.condition.shown if spec.condition is not None else None


def _partition(plan: Plan, event: str, context: str | None) -> dict[str, tuple[str, ...]]:
    """The key of each leaf below the node that detects the event."""
    found = next((one for one in plan.subscriptions if (one.event, one.context) == (event, context)), None)
    if found is None:
        return {}
    node = plan.nodes[found.node]
    keys: dict[str, tuple[str, ...]] = {}
    for other in plan.nodes:
        if other.group == node.group and other.operator == "relay":
            keys.update({leaf: key for leaf, key in other.keys if leaf in node.leaves})
        elif other.group == node.group and other.source in node.leaves and other.key:
            keys[other.source or ""] = other.key
    return keys
