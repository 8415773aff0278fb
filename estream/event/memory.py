"""Memory the kernel works on: growable arrays of 64-bit words, reached through one header of addresses.

Every kernel function takes one number, the address of the header, so that calls stay cheap however much state there
is, and nothing is compiled twice for other types. The arrays belong to numpy; where one is too short the kernel calls
back (`grow`) and goes on with the longer one.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from estream.event.compiled import compiled
from estream.event.words import CAPACITY, GROW, GROWABLE, HEADER_WORDS, USED

Words = npt.NDArray[np.int64]
LEAST_CAPACITY = 1024

_WORD = ir.IntType(64)


if TYPE_CHECKING:

    def peek(address: int, index: int) -> int:
        """The word number `index` at `address`."""

    def peek_double(address: int, index: int) -> float:
        """The word number `index` at `address`, read as a double."""

    def poke(address: int, index: int, value: int) -> None:
        """Set the word number `index` at `address`."""

    def call(function: int, first: int, second: int, third: int) -> int:
        """Call the C function at address `function` with three words; its result is a word.

        By address and not as a numba function: the kernel is then the same, and compiled once, for every graph.
        """

else:

    def _pointer(builder: Any, address: Any, index: Any) -> Any:
        base = builder.inttoptr(address, _WORD.as_pointer())
        return builder.gep(base, [index])

    @intrinsic
    def peek(typing_context: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(_pointer(builder, arguments[0], arguments[1]))

        return types.int64(types.int64, types.int64), generate

    @intrinsic
    def peek_double(typing_context: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            base = builder.inttoptr(arguments[0], ir.DoubleType().as_pointer())
            return builder.load(builder.gep(base, [arguments[1]]))

        return types.float64(types.int64, types.int64), generate

    @intrinsic
    def poke(typing_context: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.store(arguments[2], _pointer(builder, arguments[0], arguments[1]))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    @intrinsic
    def call(typing_context: Any, function: Any, first: Any, second: Any, third: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(_WORD, [_WORD, _WORD, _WORD])
            pointer = builder.inttoptr(arguments[0], kind.as_pointer())
            return builder.call(pointer, list(arguments[1:]))

        return types.int64(types.int64, types.int64, types.int64, types.int64), generate


@compiled
def reserve(m: int, array: int, more: int) -> None:
    """Make room for `more` words behind what is used of a growable array."""
    if peek(m, array + USED) + more > peek(m, array + CAPACITY):
        call(peek(m, GROW), array, more, 0)


@compiled
def push(m: int, array: int, value: int) -> None:
    """Append one word to a growable array."""
    reserve(m, array, 1)
    used = peek(m, array + USED)
    poke(peek(m, array), used, value)
    poke(m, array + USED, used + 1)


_GROW = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Memory:
    """The header and the arrays it points to; keeps them alive and grows them on the kernel's call."""

    def __init__(self) -> None:
        self.header: Words = np.zeros(HEADER_WORDS, dtype=np.int64)
        self._arrays: dict[int, npt.NDArray[Any]] = {}
        self._kept: list[npt.NDArray[Any]] = []
        self._grow = _GROW(self._grown)
        pointer = ctypes.cast(self._grow, ctypes.c_void_p).value
        self.header[GROW] = pointer if pointer is not None else 0
        for array in GROWABLE:
            self.allot(array, LEAST_CAPACITY)

    @property
    def address(self) -> int:
        """What the kernel is called with."""
        return int(self.header.ctypes.data)

    def point(self, word: int, array: npt.NDArray[Any]) -> None:
        """Let a header word point to an array, which is kept alive; it must be contiguous."""
        self._arrays[word] = array
        self.header[word] = array.ctypes.data

    def keep(self, array: npt.NDArray[Any]) -> None:
        """Keep an array alive that other arrays hold addresses in."""
        self._kept.append(array)

    def allot(self, array: int, capacity: int) -> None:
        """An empty growable array."""
        self.point(array, np.empty(capacity, dtype=np.int64))
        self.header[array + USED] = 0
        self.header[array + CAPACITY] = capacity

    def used(self, array: int) -> Words:
        """A view of what is used of a growable array: valid until the kernel runs again."""
        return self._arrays[array][: self.header[array + USED]]

    def fill(self, array: int, values: Words) -> None:
        """Replace the content of a growable array."""
        self.allot(array, max(LEAST_CAPACITY, len(values) + len(values) // 2))
        self._arrays[array][: len(values)] = values
        self.header[array + USED] = len(values)

    def foresee(self, array: int, more: int) -> None:
        """Make room for `more` words now, in one go; pages that are not used cost nothing."""
        if self.header[array + USED] + more > self.header[array + CAPACITY]:
            self._grown(array, more, 0)

    def clear(self, array: int) -> None:
        """Forget the content of a growable array and keep its room."""
        self.header[array + USED] = 0

    def _grown(self, array: int, more: int, unused: int) -> int:
        used = int(self.header[array + USED])
        longer = np.empty(max(2 * int(self.header[array + CAPACITY]), used + more), dtype=np.int64)
        longer[:used] = self._arrays[array][:used]
        self.point(array, longer)
        self.header[array + CAPACITY] = len(longer)
        return 0
