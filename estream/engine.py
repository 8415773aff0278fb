"""EStream from Python: a CEQ file with callbacks of one's own, run in this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Self

from estream import app
from estream.errors import EStreamError
from estream.rule.registry import Callback, CallbackError, require_signature
from estream.suggest import suggestion


class Engine:
    """A CEQ file at work: `Engine("file.yaml").on("AccidentNotify", callback).run()`.

    EStreamError tells everything that is wrong with the file or a callback, before anything runs.
    """

    def __init__(self, file: str | Path) -> None:
        path = Path(file)
        app.require_readable(path)
        self._root = app.project_root(path)
        self._loaded = app.load(path, os.environ)
        if self._loaded.is_wrong or self._loaded.checked is None:
            raise EStreamError(self._loaded.problems)
        self._checked = self._loaded.checked
        self._callbacks: dict[str, list[Callback]] = {}

    def on(self, name: str, callback: Callback) -> Self:
        """Call a function for the firings of a rule, after its other actions, or for every detection of an event."""
        known = (*self._checked.rules, *self._checked.events)
        if name not in known:
            raise EStreamError(f"there is no rule and no event '{name}'; {suggestion(name, known)}")
        try:
            require_signature(callback, getattr(callback, "__qualname__", repr(callback)))
        except CallbackError as error:
            raise EStreamError(str(error)) from None
        self._callbacks.setdefault(name, []).append(callback)
        return self

    def run(self, once: bool = False, seconds: float | None = None) -> None:
        """Run until it is stopped, so many seconds long, or, with `once`, until what is there has been taken."""
        options = app.RunOptions(once=once, seconds=seconds)
        app.run(self._loaded, self._root, os.environ, options, sys.stdout, self._callbacks)
