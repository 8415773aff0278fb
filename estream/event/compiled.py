"""`@compiled`: numba functions that a second start finds on disk.

numba notices a changed file, not a changed function that the file calls. So the cache of the kernel has a directory of
its own for each content of the sources. It lies in the user's cache directory, which can be written when the
installed package cannot. `ESTREAM_CACHE_DIR` moves it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config as numba_config

Function = TypeVar("Function", bound=Callable[..., Any])
COMPILED_SOURCES = (
    "memory.py",
    "words.py",
    "mask*.py",
    "kernel*.py",
    "columns*.py",
    "pattern_kernel.py",
    "detections.py",
    "identity.py",
    "sweep.py",
    "segment_lists.py",
)


def cache_directory() -> Path:
    """Where compiled functions are kept."""
    chosen = os.environ.get("ESTREAM_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "estream"


@cache
def source_cache(kind: str, sources: tuple[str, ...]) -> Path:
    """The directory for this content of the sources, which are patterns, and this numba."""
    here = Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for pattern in sources:
        for source in sorted(here.glob(pattern)):
            digest.update(source.read_bytes())
    return cache_directory() / f"{kind}-{digest.hexdigest()[:16]}"


def kernel_cache() -> Path:
    """The directory of the kernel's functions."""
    return source_cache("kernel", COMPILED_SOURCES)


@contextmanager
def kept_on_disk(directory: Path | None = None) -> Iterator[None]:
    """Let numba keep what is declared inside in EStream's own cache; elsewhere its setting stays as it was."""
    config: Any = numba_config
    before = config.CACHE_DIR
    config.CACHE_DIR = str(directory or kernel_cache())
    try:
        yield
    finally:
        config.CACHE_DIR = before


def compiled(function: Function) -> Function:
    """Compile with numba at the first call, or load what an earlier process compiled."""
    with kept_on_disk():
        return cast(Function, numba.njit(cache=True, error_model="numpy")(function))
