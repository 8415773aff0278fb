"""The ways in which an action can fail, as the agenda tells them apart."""

from __future__ import annotations


class ActionFailed(Exception):
    """An attempt failed; another one may succeed."""

    def __init__(self, message: str, after: float | None = None) -> None:
        """`after` are the seconds for which the sink asked to be left alone."""
        super().__init__(message)
        self.after = after


class ActionLate(ActionFailed):
    """An attempt took longer than it may."""


class ActionRefused(Exception):
    """An attempt can never succeed: it is not tried again."""


def reason(error: BaseException) -> str:
    """What went wrong, in one line: a message of ours alone, else with the kind of the error."""
    try:
        said = str(error)
    except Exception:
        said = ""
    # What no database takes is escaped: a callback may say anything.
    said = said.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")
    text = " ".join(said.split()) or "no message"
    if isinstance(error, (ActionFailed, ActionRefused)):
        return text[:2000]
    return f"{type(error).__name__}: {text}"[:2000]
