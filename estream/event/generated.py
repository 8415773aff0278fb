"""Modules that EStream writes: kept in the cache directory under a name made from their content.

What they declare is compiled once: a second start finds the machine code beside them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from estream.event.compiled import kept_on_disk, kernel_cache


def load_generated(kind: str, source: str, directory: Path | None = None) -> ModuleType:
    """The module of a source; `kind` begins its name. It is kept in `directory`, or with the kernel."""
    directory = directory or kernel_cache()
    name = f"{kind}_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
    if name in sys.modules:
        return sys.modules[name]
    path = directory / f"{name}.py"
    if not path.exists():
        _write(path, source)
    with kept_on_disk(directory):
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # numba looks for the module of what it finds on disk by its name.
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module


def _write(path: Path, source: str) -> None:
    """Write a file whole or not at all: several processes may start at the same time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(source, encoding="utf-8")
    part.replace(path)
