"""`@compiled`: numba functions that a second start finds on disk.

numba notices a changed file, not a changed function that the file calls. So the cache of the kernel has a directory of
its own for each content of the sources. It lies in the user's cache directory, which can be written when the
installed package cannot. `ESTREAM_CACHE_DIR` moves it. Where it cannot be written either, the machine code lasts as
long as the process.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config as numba_config

LOGGER = logging.getLogger("estream.event")
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


@cache
def cache_directory() -> Path:
    """Where compiled functions are kept: a directory that can be written."""
    chosen = os.environ.get("ESTREAM_CACHE_DIR")
    wanted = Path(chosen or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "estream")
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=wanted).close()
    except OSError as error:
        passing = Path(tempfile.mkdtemp(prefix="estream-"))
        atexit.register(shutil.rmtree, passing, ignore_errors=True)
        LOGGER.warning("cannot keep machine code in %s (%s): set ESTREAM_CACHE_DIR", wanted, error.strerror)
        return passing
    return wanted


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


@cache
def tell_of_first_compilation() -> None:
    """Say why the first detection takes so long, if this version has never detected anything here."""
    if not any(kernel_cache().rglob("*.nbc")):
        LOGGER.warning("compiling the detection kernel, which takes about half a minute, once for this version")


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
