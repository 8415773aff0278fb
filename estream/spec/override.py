"""A CEQ file with changes that were made while it ran: other masks, rules enabled or disabled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from estream.errors import EStreamError, Place
from estream.spec import model
from estream.spec.reader import Read
from estream.suggest import suggestion
from estream.text import Mark, Text

Name = TypeVar("Name")
Spec = TypeVar("Spec")


@dataclass(frozen=True, slots=True)
class Overrides:
    """What differs from the file."""

    masks: Mapping[str, str | None] = field(default_factory=dict)
    """Event to its mask, None for none."""
    rules: Mapping[str, bool] = field(default_factory=dict)
    """Rule to whether it is enabled."""

    @property
    def is_empty(self) -> bool:
        """Whether the file stands as it is."""
        return not self.masks and not self.rules

    def __str__(self) -> str:
        masks = [f"the mask of {event} is {mask or 'none'}" for event, mask in self.masks.items()]
        rules = [f"rule {rule} is {'enabled' if on else 'disabled'}" for rule, on in self.rules.items()]
        return "; ".join(masks + rules)

    def with_mask(self, event: str, mask: str | None) -> Overrides:
        """The same with one more mask."""
        return replace(self, masks={**self.masks, event: mask})

    def with_rule(self, rule: str, enabled: bool) -> Overrides:
        """The same with one more rule enabled or disabled."""
        return replace(self, rules={**self.rules, rule: enabled})


UNCHANGED = Overrides()


def override(read: Read, overrides: Overrides) -> Read:
    """The file as it was read, with the overrides in it; a name that is not there is an EStreamError."""
    if read.ceq is None or overrides.is_empty:
        return read
    events = {str(name): (name, event) for name, event in read.ceq.events.items()}
    rules = {str(name): (name, rule) for name, rule in read.ceq.rules.items()}
    changed_events = dict(read.ceq.events)
    changed_rules = dict(read.ceq.rules)
    sources = dict(read.sources)
    for event, mask in overrides.masks.items():
        name, spec = _known(events, event, "event")
        changed_events[name] = _masked(event, spec, mask)
        sources[_file(event)] = (mask or "").splitlines()
    for rule, enabled in overrides.rules.items():
        name, own = _known(rules, rule, "rule")
        changed_rules[name] = own.model_copy(update={"enabled": enabled})
    ceq = read.ceq.model_copy(update={"events": changed_events, "rules": changed_rules})
    return replace(read, ceq=ceq, sources=sources)


def _known(parts: Mapping[str, tuple[Name, Spec]], name: str, kind: str) -> tuple[Name, Spec]:
    if name not in parts:
        raise EStreamError(f"there is no {kind} '{name}'; {suggestion(name, parts)}")
    return parts[name]


def _masked(name: str, event: model.Event, mask: str | None) -> model.Event:
    if not isinstance(event, model.PrimitiveEvent | model.CompositeEvent):
        raise EStreamError(f"event '{name}' has no mask: only primitive and composite events have one")
    lines = tuple((number, 1) for number, _ in enumerate((mask or "").splitlines(), 1))
    mark = Mark(Place(_file(name), 1, 1, max(len(mask or ""), 1)), lines)
    return event.model_copy(update={"mask": None if mask is None else Text(mask, mark)})


def _file(event: str) -> str:
    """What stands for the file in the places of a mask's problems."""
    return f"<mask of {event}>"
