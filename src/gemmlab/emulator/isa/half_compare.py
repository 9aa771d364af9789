"""Comparison and selection within pairs of 16-bit floats."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.float_compare import (
    COMBINING,
    COMPARISONS,
    compared,
    joined,
    lesser_or_greater,
    with_sign_of_product,
)
from gemmlab.emulator.isa.half_pairs import SELECTORS, Halves, Pair
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes


def _truths(x: Form) -> tuple[Pair, Lanes]:
    halves = Halves(x)
    a, b = halves.source(), halves.source()
    low, high = (compared(x, one, two) for one, two in zip(a, b, strict=True))
    return (low, high), x.predicate()


@opcode("HSETP2")
def hsetp2(x: Form) -> None:
    """Compare pairs, and join results with a predicate; the first is for the lower numbers, the other for the upper."""
    x.allow(*COMPARISONS, *COMBINING, "FTZ", "BF16_V2", suffixes=SELECTORS)
    results = x.dest_predicates(2, least=2)
    truths, other = _truths(x)
    for result, truth in zip(results, truths, strict=True):
        result.set(joined(x, truth, other))


@opcode("HSET2")
def hset2(x: Form) -> None:
    """Compare pairs, join results with a predicate, and write a pair: 1.0 (`.BF`) or all bits set if true, else 0."""
    x.allow(*COMPARISONS, *COMBINING, "FTZ", "BF", "BF16_V2", suffixes=SELECTORS)
    d = x.dest()
    truths, other = _truths(x)
    one = (0x3F80 if x.has("BF16_V2") else 0x3C00) if x.has("BF") else 0xFFFF
    low, high = (joined(x, truth, other).select(x.constant(one), 0) for truth in truths)
    d.set(low | (high << 16))


@opcode("HMNMX2")
def hmnmx2(x: Form) -> None:
    """Take the lesser numbers if the last operand, a predicate, is true, else the greater; `.XORSIGN` as in FMNMX."""
    x.allow("FTZ", "NAN", "XORSIGN", "BF16_V2", suffixes=SELECTORS)
    d, halves = x.dest(), Halves(x)
    (a, a_source), (b, b_source) = halves.source_and_original(), halves.source_and_original()
    least = x.predicate()
    parts = []
    for one, two, one_source, two_source in zip(a, b, a_source, b_source, strict=True):
        chosen = lesser_or_greater(x, one, two, least)
        if x.has("XORSIGN"):
            chosen = with_sign_of_product(chosen, one_source, two_source)
        # Selection is exact in float32, and so is the conversion back.
        parts.append(halves.bits(chosen.bits("f32")))
    d.set(parts[0] | (parts[1] << 16))
