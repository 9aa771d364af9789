"""Operands in flat buffers between guard bands, so that any write outside them is detected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gemmlab.devices.device import Buffer, Window
from gemmlab.ops.op import Float32Array, Operand

SENTINEL = 0x7FE1DEAD
"""Bit pattern of guards and gaps: a quiet NaN, so that reading them shows in the result too."""
GUARD_ROWS = 72
LEAST_GUARD_WORDS = 1024
MOST_GUARD_WORDS = 1 << 18
ALIGNED_WORDS = 64
"""A guard's length is a multiple of this number of words (256 bytes), which preserves a GPU allocation's alignment."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A place in which a kernel changed words that it must not change."""

    operand: str
    place: str
    """`"before"`, `"after"`, `"gap"` (between the end of a row and the next) or `"input"`."""
    offset: int
    """Distance in float32 words from the operand's first element to the first changed word."""
    row: int
    column: int
    bits: int
    words: int
    """Number of changed words in this place."""

    def explain(self) -> str:
        """The violation in one sentence."""
        where = {
            "before": f"{-self.offset} words before its first element",
            "after": f"at word {self.offset}, behind its last element",
            "gap": f"in the gap behind row {self.row} (column {self.column})",
            "input": f"element [{self.row}, {self.column}], an input",
        }[self.place]
        value = np.uint32(self.bits).view(np.float32)
        return f"{self.operand}: {self.words} word(s) overwritten, first {where}, now {value:.9g} (0x{self.bits:08X})"


class GuardedBuffer:
    """One operand's contents, laid out with its leading dimension inside guard bands.

    `shift` moves the first element by that many words off the allocation's alignment. Without `guards` nothing else
    precedes it and nothing follows the last one, for a device that detects every access out of bounds itself.
    """

    def __init__(self, operand: Operand, contents: Float32Array, shift: int = 0, *, guards: bool = True) -> None:
        self.operand = operand
        rows, cols, ld = operand.rows, operand.cols, operand.ld
        self._span = (rows - 1) * ld + cols if rows and cols else 0
        guard = min(max(LEAST_GUARD_WORDS, GUARD_ROWS * ld), MOST_GUARD_WORDS) if guards else 0
        guard = -(-guard // ALIGNED_WORDS) * ALIGNED_WORDS
        self._start = guard + shift
        self._words = np.full(self._start + self._span + guard, SENTINEL, dtype=np.uint32)
        if self._span:
            self._view(self._words)[...] = contents.view(np.uint32)
        self._before = self._words.copy()

    def _view(self, words: npt.NDArray[Any]) -> npt.NDArray[Any]:
        inside = words[self._start : self._start + self._span]
        shape, size = (self.operand.rows, self.operand.cols), inside.itemsize
        return np.lib.stride_tricks.as_strided(inside, shape, (self.operand.ld * size, size))

    @property
    def flat(self) -> Float32Array:
        """The words from the first element to the last, as `bind` takes them."""
        return self._words[self._start : self._start + self._span].view(np.float32)

    @property
    def words(self) -> npt.NDArray[np.uint32]:
        """The whole buffer, guards included."""
        return self._words

    def inside(self, whole: Buffer) -> Window:
        """The operand's part of a device's copy of `words`."""
        return Window(whole, 4 * self._start, 4 * self._span)

    def contents(self) -> Float32Array:
        """A copy of the elements, of shape (rows, cols)."""
        if not self._span:
            return np.empty((self.operand.rows, self.operand.cols), np.float32)
        return self._view(self._words).copy().view(np.float32)

    def violations(self) -> list[Violation]:
        """The changes since construction outside the kernel's output, one entry for each place."""
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
                found.append(Violation(self.operand.name, place, offset, row, col, bits, int(mask.sum())))
        return found
