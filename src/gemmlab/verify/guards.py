"""Operands in flat buffers between guard bands, so that writes outside of them are detected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.core.elements import FLOAT32, element
from gemmlab.devices.device import Buffer, Window
from gemmlab.ops.op import Operand

SENTINEL = 0x7FE1DEAD
"""Bit pattern of 4-byte guards and gaps: a quiet NaN, so that reading them shows in the result, too."""
_SENTINELS = {1: 0x5D, 2: 0x7FE1, 4: SENTINEL, 8: 0x7FF9DEAD_7FE1DEAD}
"""Bit patterns of guards and gaps by the bytes of an element: a NaN as a float of 16 bits or more, a rare value as an
8-bit float or an integer.
"""
GUARD_ROWS = 72
LEAST_GUARD_WORDS = 1024
MOST_GUARD_WORDS = 1 << 18
ALIGNED_BYTES = 256
"""A guard's length is a multiple of this, which preserves a GPU allocation's alignment."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A place of one operand's buffer in which a kernel changed words that it must not change."""

    operand: str
    place: str
    """`"before"`, `"after"`, `"gap"` (between the end of a row and the next) or `"input"`."""
    offset: int
    """Distance in elements from the operand's first element to the first changed word; before it, to the last one."""
    row: int
    column: int
    bits: int
    """The new bits of the word at `offset`."""
    words: int
    """Number of changed words in this place, an element each."""
    element: str = FLOAT32.name
    """Type of the elements."""

    def explain(self) -> str:
        """Return the violation in one sentence."""
        where = {
            "before": f"{-self.offset} words before its first element",
            "after": f"at word {self.offset}, behind its last element",
            "gap": f"in the gap behind row {self.row} (column {self.column})",
            "input": f"element [{self.row}, {self.column}], an input",
        }[self.place]
        kind = element(self.element)
        stored = np.array([self.bits], f"u{kind.nbytes}").view(kind.storage)
        now = f"{float(kind.widen(stored)[0]):.9g} (0x{self.bits:0{2 * kind.nbytes}X})"
        return f"{self.operand}: {self.words} word(s) overwritten, first {where}, now {now}"


class GuardedBuffer:
    """One operand's contents, laid out with its leading dimension inside guard bands.

    `shift` moves the first element by that many elements off the allocation's alignment. Without `guards`, for a device
    that detects every access out of bounds itself, only these elements precede the first one and none follow the last.
    """

    def __init__(self, operand: Operand, contents: npt.NDArray[Any], shift: int = 0, *, guards: bool = True) -> None:
        self.operand = operand
        rows, cols, ld = operand.rows, operand.cols, operand.ld
        self._span = (rows - 1) * ld + cols if rows and cols else 0
        guard = min(max(LEAST_GUARD_WORDS, GUARD_ROWS * ld), MOST_GUARD_WORDS) if guards else 0
        size = operand.element.nbytes
        aligned = ALIGNED_BYTES // size
        guard = -(-guard // aligned) * aligned
        kind = np.dtype(f"u{size}")
        self._start = guard + shift
        self._words = np.full(self._start + self._span + guard, _SENTINELS[size], dtype=kind)
        if self._span:
            self._view(self._words)[...] = contents.view(kind)
        self._before = self._words.copy()

    def _view(self, words: npt.NDArray[Any]) -> npt.NDArray[Any]:
        inside = words[self._start : self._start + self._span]
        shape, size = (self.operand.rows, self.operand.cols), inside.itemsize
        return np.lib.stride_tricks.as_strided(inside, shape, (self.operand.ld * size, size))

    @property
    def flat(self) -> npt.NDArray[Any]:
        """The elements from the first to the last, gaps included, as a view of shape (words,) that `bind` takes."""
        return self._words[self._start : self._start + self._span].view(self.operand.element.storage)

    @property
    def words(self) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The bits of the whole buffer, guards included."""
        return self._words

    def inside(self, whole: Buffer) -> Window:
        """Return the operand's part of `whole`, a device's copy of `words`."""
        size = self.operand.element.nbytes
        return Window(whole, size * self._start, size * self._span)

    def contents(self) -> npt.NDArray[Any]:
        """Return a copy of the elements as they are stored, of shape (rows, cols)."""
        storage = self.operand.element.storage
        if not self._span:
            return np.empty((self.operand.rows, self.operand.cols), storage)
        return self._view(self._words).copy().view(storage)

    def violations(self) -> list[Violation]:
        """Return the changes since construction, except those of an output's elements; one entry for each place."""
        changed = self._words != self._before
        if self.operand.role != "in" and self._span:
            self._view(changed)[...] = False
        where = np.flatnonzero(changed) - self._start
        if where.size == 0:
            return []
        column = where % self.operand.ld
        inside = (where >= 0) & (where < self._span)
        places = {
            "before": where < 0,
            "after": where >= self._span,
            "gap": inside & (column >= self.operand.cols),
            "input": inside & (column < self.operand.cols),
        }
        found = []
        for place, mask in places.items():
            if mask.any():
                # In front of the operand, report the changed word nearest to it.
                offset = int(where[mask][-1 if place == "before" else 0])
                row, col = divmod(offset, self.operand.ld)
                bits = int(self._words[self._start + offset])
                changed_words, kind = int(mask.sum()), self.operand.element.name
                found.append(Violation(self.operand.name, place, offset, row, col, bits, changed_words, kind))
        return found
