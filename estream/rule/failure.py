"""The ways in which an action can fail, as the agenda tells them apart."""

from __future__ import annotations


class ActionFailed(Exception):
    """An attempt failed; another one may succeed."""

    def __init__(self, message: str, after: float | None = None) -> None:
        """`after` are the seconds for which the sink asked to be left alone."""
        super().__init__(message)
        self.after = after


class ActionRefused(Exception):
    """An attempt can never succeed: it is not tried again."""


def reason(error: BaseException) -> str:
    """What went wrong, in one line: a message of ours alone, else with the kind of the error."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, (ActionFailed, ActionRefused)):
        return text[:2000]
    return f"{type(error).__name__}: {text}"[:2000]
