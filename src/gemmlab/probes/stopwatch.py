"""The probe that adds up the time spent in packing functions, by the system's monotonic clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gemmlab.codegen.clock import emit_clock
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.probe import STATE, packs
from gemmlab.ir.types import I64, Type
from gemmlab.ir.values import Value


class PackingClock:
    """A probe that times packing: word 0 of its state counts the nanoseconds, word 1 the calls, of one thread."""

    name = "packing-clock"
    words = 2

    def prepare(self, module: Module) -> None:
        """Emit the function that reads the clock."""
        module.imported(STATE)
        self._read = emit_clock(module)

    def access(self, fn: Function, address: Value, type_: Type, mask: Value | None, *, write: bool) -> None:
        """Do nothing: accesses do not matter here."""

    @contextmanager
    def around(self, fn: Function, callee: Function) -> Iterator[None]:
        """Emit code around a call of `callee` that times it, if it is a packing function."""
        if not packs(callee):
            yield
            return
        begin = fn.call(self._read)
        yield
        state = fn.symbol(f"@{STATE}", I64)
        state[0] = state[0] + (fn.call(self._read) - begin)
        state[1] = state[1] + 1
