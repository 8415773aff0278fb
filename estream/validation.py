"""Data checked against a model, every mistake told in EStream's own words and at its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, Tag, TypeAdapter, ValidationError

from estream.errors import Place, Problem
from estream.scalar import resolve
from estream.suggest import nearest, suggestion
from estream.text import Text
from estream.yaml import Items, Map

Model = TypeVar("Model")

_WANTED = {
    "string_type": "text",
    "is_instance_of": "text",
    "int_type": "a whole number",
    "int_parsing_size": "a whole number of usual size",
    "float_type": "a number",
    "bool_type": "true or false",
    "model_type": "a map",
    "dict_type": "a map",
    "list_type": "a list",
    "tuple_type": "a list",
}
_LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
}
_LONGEST_SHOWN = 60


def validate(
    adapter: TypeAdapter[Model], annotation: Any, data: Any, owner: str, at: Text | None = None
) -> tuple[Model | None, list[Problem]]:
    """The data as the model, and all that is wrong with it; `owner` names it and `at` is where its name stands.

    Where only keys are wrong, the model is there with what they were meant to be, so that the rest is looked at too.
    """
    try:
        return adapter.validate_python(data), []
    except ValidationError as error:
        errors = error.errors(include_url=False)
    start = _Spot(owner, at, data, annotation, at.place if at is not None else _place(data))
    spots = [(found, start.follow(found["loc"])) for found in errors]
    problems = list(_told_once(spots))
    try:
        return adapter.validate_python(_as_meant(data, spots)), problems
    except ValidationError:
        return None, problems


def _as_meant(data: Any, spots: list[tuple[Any, _Spot]]) -> Any:
    """The map with mistyped keys put right, and without those that are like none; as it is if more is wrong."""
    unknown = {spot.path: spot for error, spot in spots if error["type"] == "extra_forbidden"}
    # What is no word is mostly the rest of a text that was cut at a comma: nothing can be said of such a map.
    if not isinstance(data, Map) or not all(path in data and path.isidentifier() for path in unknown):
        return data
    meant = Map(data.place)
    for key, value in data.items():
        name = nearest(key, unknown[key].siblings) if key in unknown else key
        if name is not None and (name is key or name not in data):
            meant[Text(name, key.mark)] = value
    return meant


def describe(value: Any) -> str:
    """What was found, in words and with nothing secret in it."""
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list):
        return "a list"
    meant = None if isinstance(value, Text) and value.hidden else resolve(value)
    if isinstance(meant, bool):
        return str(meant).lower()
    if isinstance(meant, (int, float)):
        return f"the number {meant if abs(meant) < 1e15 else str(value)[:_LONGEST_SHOWN]}"
    if isinstance(value, Text) and not value.is_nothing:
        return f"the text {value.brief}"
    return "nothing" if meant is None else f"the text {str(value)[:_LONGEST_SHOWN]!r}"


@dataclass(frozen=True, slots=True)
class _Spot:
    """A point in the data, and what the model wants there."""

    owner: str
    key: Text | None
    value: Any
    annotation: Any
    place: Place
    path: str = ""
    missing: str | None = None
    at_key: bool = False
    siblings: tuple[str, ...] = ()
    kinds: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Of a part of several kinds: the keys that make it the kind it is, and those that make it another."""

    def follow(self, loc: tuple[int | str, ...]) -> _Spot:
        """The point that pydantic's location names."""
        spot = self
        for step in loc:
            spot = spot._step(step)
        return spot

    def _step(self, step: int | str) -> _Spot:
        tagged = _tagged(self.annotation, step)
        if tagged is not None:
            own = [key for key in _deciding(tagged) if isinstance(self.value, Map) and key in self.value]
            others = [key for key in _kind_keys(self.annotation) if key not in _fields(tagged)]
            return replace(self, annotation=tagged, kinds=(tuple(own), tuple(others)))
        if step == "[key]":
            return replace(self, at_key=True)
        inner = _inner(self.annotation, step)
        if isinstance(self.value, Map) and (key := self.value.key(step)) is not None:
            path = f"{self.path}.{key}" if self.path else str(key)
            value = self.value[key]
            siblings = tuple(_fields(self.annotation))
            return replace(
                self, key=key, value=value, annotation=inner, path=path, place=_place(value), siblings=siblings
            )
        if isinstance(self.value, Items) and isinstance(step, int) and step < len(self.value):
            value = self.value[step]
            return replace(self, value=value, annotation=inner, path=f"{self.path}[{step + 1}]", place=_place(value))
        return replace(self, missing=str(step))

    @property
    def subject(self) -> str:
        """The words a message begins with."""
        return f"{self.owner}: {self.path}" if self.path else self.owner


def _place(value: Any) -> Place:
    return value.place if isinstance(value, (Text, Map, Items)) else Place("<data>", 1, 1)


def _bare(annotation: Any) -> Any:
    """The annotation without what is only said about it, and without `None`."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, UnionType):
        members = [member for member in get_args(annotation) if member is not NoneType]
        return _bare(members[0]) if len(members) == 1 else annotation
    return annotation


def _tags(annotation: Any) -> dict[str, Any]:
    """The members of a union by their tags."""
    bare = _bare(annotation)
    if get_origin(bare) not in (Union, UnionType):
        return {}
    notes = {member: get_args(member)[1:] for member in get_args(bare) if get_origin(member) is Annotated}
    return {note.tag: member for member, found in notes.items() for note in found if isinstance(note, Tag)}


def _tagged(annotation: Any, step: int | str) -> Any:
    return _tags(annotation).get(step) if isinstance(step, str) else None


def _fields(annotation: Any) -> dict[str, Any]:
    """The keys of a model, as they are written, and what each wants."""
    bare = _bare(annotation)
    if not (isinstance(bare, type) and issubclass(bare, BaseModel)):
        return {}
    return {field.alias or name: field.annotation for name, field in bare.model_fields.items()}


def _inner(annotation: Any, step: int | str) -> Any:
    bare = _bare(annotation)
    if get_origin(bare) is dict:
        return get_args(bare)[1]
    if get_origin(bare) in (tuple, list):
        return get_args(bare)[0]
    return _fields(bare).get(str(step))


def _told_once(spots: list[tuple[Any, _Spot]]) -> Iterator[Problem]:
    """One problem for each point; none for a list that is too short because its items are wrong.

    Nor is a key missing that was only mistyped.
    """
    told: set[tuple[str, str | None]] = set()
    unknown = [spot for error, spot in spots if error["type"] == "extra_forbidden" and spot.key is not None]
    meant = {nearest(str(spot.key), spot.siblings) for spot in unknown}
    for error, spot in spots:
        if error["type"] == "missing" and spot.missing in meant:
            continue
        about = (spot.path, spot.missing if error["type"] in ("missing", "extra_forbidden") else None)
        if about not in told and not (error["type"] == "too_short" and _is_wrong_inside(spot, spots)):
            told.add(about)
            yield _problem(error, spot)


def _is_wrong_inside(spot: _Spot, spots: list[tuple[Any, _Spot]]) -> bool:
    return any(other.path.startswith(spot.path + "[") for _, other in spots)


def _problem(error: Any, spot: _Spot) -> Problem:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown_key(spot)
    if kind == "union_tag_not_found":
        return _no_kind(spot)
    name = spot.key.place if spot.key is not None and not spot.path.endswith("]") else spot.place
    if kind == "missing":
        return Problem(name, f"{spot.subject}: '{spot.missing}' is missing")
    if kind in _WANTED:
        return _say(spot, f"{spot.subject} is {describe(spot.value)}, not {_WANTED[kind]}")
    if kind == "literal_error":
        options = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
        return _say(spot, f"{spot.subject} is {describe(spot.value)}; {suggestion(str(spot.value), options)}")
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        return _say(spot, f"{spot.subject} is {describe(spot.value)}; it must be {words} {context[limit]}")
    if kind == "too_short":
        return _say(spot, f"{spot.subject} is empty")
    if kind == "value_error":
        return _say(spot, f"{spot.subject}: {context['error']}")
    if spot.at_key and spot.key is not None:
        return spot.key.problem(f"{spot.owner}: {spot.key!r}: {error['msg']}")
    return _rule_of_the_model(error["msg"], context, spot, name)


def _say(spot: _Spot, message: str) -> Problem:
    return spot.value.problem(message) if isinstance(spot.value, Text) else Problem(spot.place, message)


def _rule_of_the_model(message: str, context: Mapping[str, Any], spot: _Spot, name: Place) -> Problem:
    """What a validator of ours says: about a value, or about the keys of a map."""
    if isinstance(spot.value, Text):
        return spot.value.problem(f"{spot.subject}: {message}")
    guilty = spot.value.key(context.get("key")) if isinstance(spot.value, Map) else None
    return Problem(guilty.place if guilty is not None else name, f"{spot.subject}: {message}")


def _unknown_key(spot: _Spot) -> Problem:
    key = str(spot.key) if spot.key is not None else spot.path
    parent = spot.path.removesuffix(key).removesuffix(".")
    where = f"{spot.owner}: {parent}" if parent else spot.owner
    place = spot.key.place if spot.key is not None else spot.place
    own, others = spot.kinds
    if key in others and own:
        return Problem(place, f"{where}: has both {own[0]!r} and {key!r}; keep one")
    if not key.isidentifier() and isinstance(spot.value, Text) and not spot.value:
        return Problem(place, f"unknown key {key!r} in {where}; text with a comma inside {{ }} needs quotes")
    return Problem(place, f"unknown key {key!r} in {where}; {suggestion(key, spot.siblings)}")


def _no_kind(spot: _Spot) -> Problem:
    """No key of the map says which kind it is."""
    if not isinstance(spot.value, Map):
        return _say(spot, f"{spot.subject} is {describe(spot.value)}, not a map")
    deciding = sorted({key for member in _tags(spot.annotation).values() for key in _fields(member)})
    for key in spot.value:
        if key not in deciding and nearest(key, deciding):
            return key.problem(f"unknown key {key!r} in {spot.subject}; {suggestion(key, deciding)}")
    kinds = ", ".join(_kind_keys(spot.annotation))
    name = spot.key.place if spot.key is not None and not spot.path.endswith("]") else spot.place
    return Problem(name, f"{spot.subject}: needs one of {kinds}")


def _kind_keys(annotation: Any) -> list[str]:
    """For each kind the keys of which one must be there."""
    return list(dict.fromkeys(key for member in _tags(annotation).values() for key in _deciding(member)))


def _deciding(member: Any) -> list[str]:
    """The keys that make a part be of this kind."""
    model = _bare(member)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return []
    own = [field.alias or name for name, field in model.model_fields.items() if field.is_required()]
    return own or list(getattr(model, "ONE_OF", []))
