"""Fields of a descriptor of an operand in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.lanes import Lanes
from gemmlab.ir.values import Value


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The word of a descriptor; its fields are i64."""

    word: Value

    @property
    def start(self) -> Lanes:
        """The start address in bytes."""
        return self._bytes(0)

    @property
    def leading(self) -> Lanes:
        """The leading distance in bytes."""
        return self._bytes(16)

    @property
    def stride(self) -> Lanes:
        """The stride in bytes."""
        return self._bytes(32)

    @property
    def base(self) -> Lanes:
        """The base offset, in rows of 128 bytes."""
        return (Lanes(self.word) >> 49) & 7

    @property
    def mode(self) -> Lanes:
        """The number of the swizzle, 0 for none."""
        return (Lanes(self.word) >> 62) & 3

    @property
    def bits(self) -> Lanes:
        """The binary logarithm of the chunks in a row: mode 1 has rows of 8 chunks, 2 of 4, 3 of 2; mode 0 of one."""
        return self.mode.eq(0).select(self.mode, self.mode.like(4) - self.mode)

    def _bytes(self, at: int) -> Lanes:
        return ((Lanes(self.word) >> at) & 0x3FFF) << 4
