"""Loops over the lanes that execute, for operations that must happen in order or have no vector form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gemmlab.emulator.address_space import LOCATE
from gemmlab.emulator.form import Form
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.layout import LANES
from gemmlab.ir.types import I32, I64
from gemmlab.ir.values import Value


@contextmanager
def each_lane(x: Form) -> Iterator[Value]:
    """Emit a loop: the block of `with each_lane(x) as lane:` runs for every lane that executes, lowest first."""
    fn = x.fn
    with fn.range(LANES) as lane:
        bit = Lanes(x.exec_bits) >> Lanes(fn.convert(lane, I32))
        with fn.when((bit & 1).ne(0).value):
            yield lane


def row(x: Form, value: Lanes) -> Value:
    """Emit a store of the 32 lanes of a value to scratch memory, to be indexed by lane number; return its address."""
    memory = x.fn.scratch(value.value.type.scalar, LANES)
    x.fn.store(memory, value.splat(LANES).value)
    return memory


def locate(x: Form, space: str, lane: Value, address: Value, key: int) -> Value:
    """Emit the search for the host address of one lane's `key & 255` bytes, and return it.

    It is 0, and an event is recorded, if the address is not valid.
    """
    return x.service(f"locate_{space}", I64, LOCATE, lane, address, key)
