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
    """Add pairs. `.F32` adds only the lower numbers and gives a float32; compilers use it as a conversion."""
    x.allow(*_RESULT, "F32", suffixes=SELECTORS)
    if x.has("F32") and x.has("FTZ", "SAT", "RELU"):
        raise x.refuse("a float32 result that is changed")
    d, halves = x.dest(), Halves(x)
    a, b = halves.source(), halves.source()
    # A float32 sum has more than twice the bits of a 16-bit float, so rounding it to 16 bits rounds the exact sum.
    d.set(canonical(a[0] + b[0]) if x.has("F32") else halves.word(Lanes.__add__, a, b))


@opcode("HMUL2", "HMUL2_32I")
def hmul2(x: Form) -> None:
    """Multiply pairs."""
    x.allow(*_RESULT, suffixes=SELECTORS)
    d, halves = x.dest(), Halves(x)
    # Exact in float32, except for BF16 below 2^-134, where the result is zero in both cases.
    d.set(halves.word(Lanes.__mul__, halves.source(), halves.source()))


@opcode("HFMA2", "HFMA2_32I")
def hfma2(x: Form) -> None:
    """Compute `a * b + c` on pairs. Compilers also use it with zero factors, to load a constant. `.MMA` only names the
    pipe.
    """
    x.allow(*_RESULT, "MMA", suffixes=SELECTORS)
    d, halves = x.dest(), Halves(x)
    d.set(halves.word(halves.fused, halves.source(), halves.source(), halves.source()))
