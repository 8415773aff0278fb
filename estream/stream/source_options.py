"""Options of EStream's own sources, read with what is wrong said in one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from estream.duration import parse_duration
from estream.errors import EStreamError
from estream.suggest import suggestion


class OptionError(EStreamError):
    """A wrong option of a source, by its name; one that is `unknown` should not be there at all."""

    def __init__(self, option: str, message: str, unknown: bool = False) -> None:
        super().__init__(message)
        self.option, self.unknown = option, unknown


_SPEED = re.compile(r"\s*(\d+(?:\.\d+)?)\s*x?\s*")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one source by name; every name is checked, so that none is mistyped in silence."""

    format: str
    given: Mapping[str, str]
    known: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.given:
            if name.lower() not in self.known:
                message = f"source '{self.format}' has no option '{name}'; {suggestion(name, self.known)}"
                raise OptionError(name, message, unknown=True)

    def text(self, name: str, default: str | None = None) -> str:
        """The option as it is written; without a default it must be there."""
        found = {key.lower(): value for key, value in self.given.items()}.get(name, default)
        if found is None:
            raise OptionError(name, f"source '{self.format}' needs the option '{name}'")
        return found

    def whole(self, name: str, default: int, least: int = 0) -> int:
        """A whole number that is not below the least."""
        text = self.text(name, str(default))
        if not re.fullmatch(r"-?\d{1,18}", text) or int(text) < least:
            raise self.wrong(name, text, f"a whole number, at least {least}")
        return int(text)

    def optional_whole(self, name: str, least: int = 0) -> int | None:
        """A whole number, or nothing if the option is not given."""
        return self.whole(name, least, least) if self.text(name, "") else None

    def number(self, name: str, default: float) -> float:
        """A number above zero."""
        text = self.text(name, str(default))
        if not re.fullmatch(r"\d{1,18}(\.\d{1,18})?", text) or float(text) <= 0:
            raise self.wrong(name, text, "a number above zero")
        return float(text)

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        text = self.text(name, str(default)).lower()
        if text not in ("true", "false"):
            raise self.wrong(name, text, "true or false")
        return text == "true"

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of some words; the first is the default."""
        text = self.text(name, choices[0])
        if text not in choices:
            raise self.wrong(name, text, f"one of {', '.join(choices)}")
        return text

    def duration(self, name: str, default: str) -> int:
        """A duration, in microseconds."""
        try:
            return parse_duration(self.text(name, default))
        except ValueError as error:
            raise OptionError(name, f"source '{self.format}': option '{name}': {error}") from None

    def speed(self, name: str = "speed") -> float:
        """How many times faster than the clock: `10x`, or 10."""
        text = self.text(name, "1x")
        found = _SPEED.fullmatch(text)
        if found is None or float(found[1]) <= 0:
            raise self.wrong(name, text, "a number above zero and x, like 10x")
        return float(found[1])

    def timestamp(self, name: str, default: str) -> int:
        """A time, in microseconds since the epoch; UTC where no offset is written."""
        text = self.text(name, default)
        try:
            read = datetime.fromisoformat(text)
        except ValueError:
            raise self.wrong(name, text, "a time like 2026-01-01T00:00:00Z") from None
        moment = read if read.tzinfo else read.replace(tzinfo=UTC)
        return round(moment.timestamp() * 1_000_000)

    def wrong(self, name: str, found: str, right: str) -> OptionError:
        """The error for a value that is none."""
        return OptionError(name, f"source '{self.format}': option '{name}' is {found!r}; it must be {right}")
