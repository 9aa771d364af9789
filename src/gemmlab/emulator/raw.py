"""Emission of typed loads and stores in the structures that Python and compiled code share, and of lane numbers."""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.ir.function import Function
from gemmlab.ir.types import I8, I32, I64, Type, vector
from gemmlab.ir.values import Builder, Value


@dataclass(frozen=True, slots=True)
class Raw:
    """A pointer to a structure that Python shares with compiled code (`layout`, `launch_layout` ...)."""

    fn: Function
    base: Value

    def at(self, offset: Value | int, element: Type) -> Value:
        """Return the address at byte `offset`, as a pointer to `element`."""
        return self.fn.cast(self.fn.cast(self.base, I8) + offset, element)

    def load(self, offset: Value | int, element: Type = I32, lanes: int = 1) -> Value:
        return self.fn.load(self.at(offset, element), lanes)

    def store(self, offset: Value | int, value: Value | int, element: Type = I32) -> None:
        self.fn.store(self.at(offset, element), value)

    def add(self, offset: int, value: Value | int) -> None:
        """Emit code that adds `value` to the i64 field at byte `offset`."""
        self.store(offset, self.load(offset, I64) + value, I64)


def lane_numbers(fn: Builder) -> Lanes:
    """Return the vector 0, 1, .. 31 of 32 i32."""
    type_ = vector(I32, LANES)
    return Lanes(fn.value(type_, "<" + ", ".join(f"i32 {lane}" for lane in range(LANES)) + ">"))
