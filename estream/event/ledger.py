"""What of a state was written as segments: so that a save writes what changed since, and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]

CHUNK = 1 << 16
"""Rows, or texts, in a segment."""
CROWD = 16
"""Small chunks of rows that are left alone."""


@dataclass(slots=True)
class Ledger:
    """The segments as they were last written, and the chunks rows were put into."""

    digests: dict[str, bytes] = field(default_factory=dict)
    chunks: dict[int, Words] = field(default_factory=dict)
    """The serial numbers of the rows in each chunk."""
    next_serial: int = 0
    next_chunk: int = 0
    texts: int = 0
    """How many texts were written."""
    stale: list[str] = field(default_factory=list)
    """Segments of nodes that are no longer there: the next save removes them."""
    swept: bool = False
    """Whether rows were forgotten since: then chunks may be emptier than they were."""

    def is_new(self, name: str, data: bytes) -> bool:
        """Whether the segment differs from the one last written; from now on it is the one."""
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if self.digests.get(name) == digest:
            return False
        self.digests[name] = digest
        return True

    def wrote(self, name: str) -> None:
        """Note a segment that never changes, and so need not be compared."""
        self.digests[name] = b""

    def texts_moved(self) -> None:
        """Texts have other codes now: all of them are to be written."""
        self.texts = 0

    @property
    def crowded(self) -> bool:
        """Whether there are far more chunks than the rows in them need."""
        stored = sum(len(serials) for serials in self.chunks.values())
        return len(self.chunks) > CROWD + 2 * (stored // CHUNK)

    def sparse(self, live: Words) -> list[int]:
        """Chunks to write anew: those half empty, and if there are too many, the small ones."""
        crowded = self.crowded
        found = []
        for chunk, serials in self.chunks.items():
            alive = int(np.isin(serials, live).sum())
            if 2 * alive < len(serials) or (crowded and 2 * alive < CHUNK):
                found.append(chunk)
        return found
