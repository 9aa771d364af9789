"""Arithmetic of pairs of 16-bit floats. Each result is rounded once, to nearest even."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.half_pairs import SELECTORS, Halves
from gemmlab.emulator.isa.rounding import canonical
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes

_RESULT = ("FTZ", "SAT", "RELU", "BF16_V2")


@opcode("HADD2", "HADD2_32I")
def hadd2(x: Form) -> None:
    """Sums. With `.F32` the sum of the lower numbers as a float32: how one is converted."""
    x.allow(*_RESULT, "F32", suffixes=SELECTORS)
    if x.has("F32") and x.has("FTZ", "SAT", "RELU"):
        raise x.refuse("a float32 result that is changed")
    d, halves = x.dest(), Halves(x)
    a, b = halves.source(), halves.source()
    # A float32 sum keeps more than twice a half's bits: rounding it again is harmless.
    d.set(canonical(a[0] + b[0]) if x.has("F32") else halves.word(Lanes.__add__, a, b))


@opcode("HMUL2", "HMUL2_32I")
def hmul2(x: Form) -> None:
    """Products."""
    x.allow(*_RESULT, suffixes=SELECTORS)
    d, halves = x.dest(), Halves(x)
    # Exact in float32, but for BF16 below 2^-134, where the result is zero either way.
    d.set(halves.word(Lanes.__mul__, halves.source(), halves.source()))


@opcode("HFMA2", "HFMA2_32I")
def hfma2(x: Form) -> None:
    """`a * b + c`; with zeros for `a` and `b`, how a constant is written. `.MMA` names the pipe."""
    x.allow(*_RESULT, "MMA", suffixes=SELECTORS)
    d, halves = x.dest(), Halves(x)
    d.set(halves.word(halves.fused, halves.source(), halves.source(), halves.source()))
