"""Float32 arithmetic: sums and products in every rounding mode, with flushed denormals and saturation."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.rounding import (
    ROUNDINGS,
    canonical,
    flush,
    mode_of,
    narrow,
    saturated,
    sign_of,
    to_odd,
    two_sum,
)
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes


def sources(x: Form, count: int) -> list[Lanes]:
    """Take the next `count` operands as float32, with denormals flushed if the instruction has `.FTZ`."""
    values = [x.source("f32") for _ in range(count)]
    return [flush(value) for value in values] if x.has("FTZ") else values


def finished(x: Form, value: Lanes) -> Lanes:
    """Return a result after flushing and saturation, as the modifiers require.

    Without modifiers, the host's result is used without change, so that a multiply-add is one host instruction. A NaN
    then has the host's bits.
    """
    if not x.modifiers:
        return value
    value = flush(value) if x.has("FTZ") else value
    return saturated(value) if x.has("SAT") else canonical(value)


@opcode("FFMA", "FFMA32I")
def ffma(x: Form) -> None:
    """Compute `a * b + c`, rounded once."""
    x.allow(*ROUNDINGS, "FTZ", "SAT")
    d = x.dest()
    a, b, c = sources(x, 3)
    mode = mode_of(x)
    # The product of two float32 is exact in float64.
    value = _sum(a.widen("f64") * b.widen("f64"), c.widen("f64"), mode) if mode else a.fma(b, c)
    d.set(finished(x, value))


@opcode("FADD", "FADD32I")
def fadd(x: Form) -> None:
    """Compute `a + b`."""
    x.allow(*ROUNDINGS, "FTZ", "SAT")
    d = x.dest()
    a, b = sources(x, 2)
    mode = mode_of(x)
    d.set(finished(x, _sum(a.widen("f64"), b.widen("f64"), mode) if mode else a + b))


@opcode("FMUL", "FMUL32I")
def fmul(x: Form) -> None:
    """Compute `a * b`."""
    x.allow(*ROUNDINGS, "FTZ", "SAT")
    d = x.dest()
    a, b = sources(x, 2)
    mode = mode_of(x)
    d.set(finished(x, narrow(a.widen("f64") * b.widen("f64"), mode) if mode else a * b))


def _sum(a: Lanes, b: Lanes, mode: str) -> Lanes:
    """Return a sum of two float64 values rounded once, to float32."""
    total, lost = two_sum(a, b)
    value = narrow(to_odd(total, lost), mode)
    if mode != "RM":
        return value
    # A sum that is exactly zero is -0 when rounding down, unless both terms are +0.
    zero = (sign_of(a) | sign_of(b)).bits("f64").narrow("f32")
    return total.eq(0.0).select(zero, value)
