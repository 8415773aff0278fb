"""What files hold, read safely: regular files only, and never more than asked for.

A pipe or a device is refused before it is opened, since opening it may wait for ever or never end.
"""

from __future__ import annotations

from pathlib import Path


def read_content(path: Path, most: int) -> bytes:
    """The first `most` bytes of a file and one more if there are more; ValueError says why there are none."""
    try:
        if not path.exists():
            raise ValueError("there is no such file")
        if path.is_dir():
            raise ValueError("it is a folder")
        if not path.is_file():
            raise ValueError("it is no regular file")
        with path.open("rb") as opened:
            return opened.read(most + 1)
    except OSError as error:
        raise ValueError((error.strerror or "it cannot be opened").lower()) from None
