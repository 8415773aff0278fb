"""The data of the workloads W3 and W3w: a million fraud warnings (F) and PIN changes (P) on 10,000 accounts, seeded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

Words = npt.NDArray[np.int64]
ROWS, SYMBOLS, ACCOUNTS = 1_000_000, 390, 10_000
BEGIN = 1_600_000_000_000_000
MILLISECOND = 1_000


@dataclass(frozen=True)
class Fraud:
    """One row per millisecond; times in microseconds."""

    number: Words
    time: Words
    warning: npt.NDArray[np.bool_]
    account: Words


def generated() -> Fraud:
    """The data set, drawn as its generator draws it: what it draws for another data set first is drawn and left."""
    chance = np.random.default_rng(20240601)
    chance.integers(0, SYMBOLS, ROWS)
    chance.integers(1, 21, ROWS), chance.choice([-1, 1], ROWS), chance.random(ROWS)
    chance.random(ROWS), chance.integers(100, 1801, ROWS), chance.integers(100, 1801, SYMBOLS)
    chance.integers(1, 10001, ROWS)
    warning = chance.random(ROWS) < 0.5
    number = np.arange(ROWS)
    return Fraud(number, BEGIN + number * MILLISECOND, warning, chance.integers(0, ACCOUNTS, ROWS))


def read(path: Path) -> Fraud:
    """The data set from a Parquet file with the columns seq, ts (ms), kind and account."""
    table = pq.read_table(path)
    time = table["ts"].to_numpy() * MILLISECOND
    warning = np.asarray(table["kind"].to_numpy() == "F")
    return Fraud(table["seq"].to_numpy(), time, warning, table["account"].to_numpy())
