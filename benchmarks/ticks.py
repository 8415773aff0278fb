"""A million ticks, the same everywhere: 390 symbols, one tick a millisecond, prices that walk between 1 and 18."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ROWS, SYMBOLS = 1_000_000, 390
LOW, HIGH = 100, 1800
START = 1_600_000_000_000_000
"""The time of the first tick, in microseconds."""


def ticks() -> pa.Table:
    """Columns ts, symbol, price, volume; symbol number 0 is IBM."""
    chance = np.random.default_rng(20240601)
    names = np.array(["IBM"] + [f"S{number:03d}" for number in range(1, SYMBOLS)])
    symbol = chance.integers(0, SYMBOLS, ROWS)
    price = _walk(chance, symbol)
    volume = chance.integers(1, 10001, ROWS)
    time = pa.array(START + 1_000 * np.arange(ROWS)).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": time, "symbol": pa.array(names[symbol].tolist()), "price": price / 100.0, "volume": volume})


def _walk(chance: np.random.Generator, symbol: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Prices in cents: steps that are reflected at the limits, and now and then a jump."""
    step = chance.integers(1, 21, ROWS) * chance.choice([-1, 1], ROWS) * (chance.random(ROWS) > 0.1)
    jump = chance.random(ROWS) < 0.02
    fresh = chance.integers(LOW, HIGH + 1, ROWS)
    current = chance.integers(LOW, HIGH + 1, SYMBOLS)
    price = np.empty(ROWS, dtype=np.int64)
    for row in range(ROWS):
        key = symbol[row]
        cents = int(fresh[row]) if jump[row] else int(current[key]) + int(step[row])
        cents = 2 * LOW - cents if cents < LOW else cents
        cents = 2 * HIGH - cents if cents > HIGH else cents
        current[key] = price[row] = cents
    return price
