"""Conversions between floating-point formats, and rounding to whole numbers within one format."""

from __future__ import annotations

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.float_to_int import FLOATS, PARTS, TO_WHOLE, source_of, whole
from gemmlab.emulator.isa.halves import to_bfloat, to_half
from gemmlab.emulator.isa.rounding import NAN, ROUNDINGS, canonical, flush, mode_of, narrow, quiet, saturated
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.small_floats import E4M3, E5M2, Format, narrowed, widened

_PACKING = ("PACK_AB", "MERGE_C", "PACK_B", "PACK_AB_MERGE_C", "UNPACK_B")


def _word(x: Form, value: Lanes, kind: str) -> Lanes:
    """Return the bits of a float32 or float64 in the format `kind`, rounded as the modifiers require.

    If the value or the format is float64, a NaN keeps as many of its bits as fit; else it becomes the hardware's
    canonical NaN.
    """
    mode = mode_of(x)
    if kind == "F64":
        return quiet(value.widen("f64"))
    if kind == "F32":
        if value.kind == "f64":
            single = quiet(narrow(value, mode))
            return flush(single) if x.has("FTZ") else single
        return canonical(flush(value) if x.has("FTZ") else value)
    if value.kind == "f32":
        return (to_bfloat if kind == "BF16" else to_half)(value, mode)
    if kind == "BF16":
        raise x.refuse("from a double")
    single = quiet(narrow(value, "ODD"))
    bits = single.bits("i32")
    return value.is_nan().select(((bits >> 16) & 0x8000) | 0x7C00 | ((bits >> 13) & 0x3FF), to_half(single, mode))


@opcode("F2F")
def f2f(x: Form) -> None:
    """Convert between formats; the modifiers name the result's format, then the operand's."""
    x.allow(*FLOATS, *ROUNDINGS, "FTZ", "SAT", suffixes=PARTS)
    formats = [name for name in x.modifiers if name in FLOATS]
    if len(formats) != 2:
        raise x.refuse("not from one format to another")
    d = x.dest()
    value = source_of(x, formats[1])
    d.set(_word(x, saturated(value) if x.has("SAT") else value, formats[0]))


@opcode("FRND")
def frnd(x: Form) -> None:
    """Round to a whole number in the same format: to nearest even, or in the direction of a modifier (`TO_WHOLE`)."""
    x.allow(*FLOATS, *TO_WHOLE, "FTZ", suffixes=PARTS)
    d = x.dest()
    kind = x.one_of(*FLOATS, default="F32")
    value = source_of(x, kind)
    d.set(_word(x, whole(x, value), kind))


@opcode("F2FP")
def f2fp(x: Form) -> None:
    """Convert float32 to smaller formats and pack them: `a` above `b`.

    `.PACK_AB` packs two 16-bit floats, `.MERGE_C` one, with the lower half of `c` above it, and `.PACK_AB_MERGE_C` two
    8-bit floats, with the lower half of `c` above them. `.PACK_B` rounds one float32 to TF32. `.UNPACK_B` converts two
    8-bit floats to FP16: those in the lower bytes, or in the upper ones (`.H1`).
    """
    small = _small(x)
    packing = x.one_of(*_PACKING)
    x.allow(*_PACKING, *FLOATS, "TF32", "E4M3", "E5M2", *ROUNDINGS, "RELU", "SATFINITE",
            suffixes=("H1",) if packing == "UNPACK_B" else ())  # fmt: skip
    d = x.dest()
    match packing:
        case "UNPACK_B" if small and x.has("F16"):
            operand = x.peek()
            start = 16 if operand is not None and "H1" in operand.suffix else 0
            word = x.source()
            low, high = (to_half(widened((word >> start + shift) & 0xFF, small)) for shift in (0, 8))
            d.set(low | (high << 16))
        case "PACK_AB_MERGE_C" if small and x.has("SATFINITE"):
            high, low = _byte(x, small), _byte(x, small)
            d.set(low | (high << 8) | (x.source() << 16))
        case "PACK_B" if x.has("TF32") and not x.has("RM", "RP"):
            d.set(_tf32(_clamped(x), truncate=x.has("RZ")))
        case "PACK_AB" if not small:
            high, low = _half(x), _half(x)
            d.set(low | (high << 16))
        case "MERGE_C" if not small:
            d.set(_half(x) | (x.source() << 16))
        case _:
            raise x.refuse()


def _small(x: Form) -> Format | None:
    return {"E4M3": E4M3, "E5M2": E5M2}.get(x.one_of("E4M3", "E5M2"))


def _clamped(x: Form) -> Lanes:
    """Take the next operand as float32; with `.RELU` negative numbers become 0."""
    value = x.source("f32")
    return value.is_nan().select(value, value.gt(0.0).select(value, 0.0)) if x.has("RELU") else value


def _half(x: Form) -> Lanes:
    if x.has("SATFINITE"):
        raise x.refuse("saturation of 16-bit formats")
    return (to_bfloat if x.has("BF16") else to_half)(_clamped(x), mode_of(x))


def _byte(x: Form, small: Format) -> Lanes:
    """Take the next operand, and convert it to an 8-bit format; numbers that are too large become the largest finite
    one.
    """
    if mode_of(x):
        raise x.refuse("a rounding of 8-bit formats")
    value = _clamped(x)
    bits = narrowed(value, small)
    finite = (bits & small.magnitude).umin(small.largest)
    return value.is_nan().select(bits, finite | (bits & (small.magnitude + 1)))


def _tf32(value: Lanes, *, truncate: bool) -> Lanes:
    """Return the bits of a float32 rounded to TF32, to nearest even or truncated: the lowest 13 bits are zero."""
    bits = value.bits("i32")
    rounded = bits if truncate else bits + 0xFFF + ((bits >> 13) & 1)
    return value.is_nan().select(bits.like(NAN), rounded) & -0x2000
