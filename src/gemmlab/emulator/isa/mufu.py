"""The special function unit: reciprocals, roots, logarithm, exponential, sine, cosine, hyperbolic tangent.

The hardware's results have about 22 correct bits. Here each function is computed in float64 and its value rounded to
float32. Denormal float32 arguments and results count as zero, except in `TANH`. A 16-bit result is truncated from that,
as on an H200: of all results recorded there for FP16 and BF16, some of the exponential differ in one bit, and all
others agree. `RCP64H` and `RSQ64H` give the upper word of the float64 value; denormal float64 numbers count as zero.
"""

from __future__ import annotations

from collections.abc import Callable

from gemmlab.emulator.form import Form
from gemmlab.emulator.isa.halves import to_bfloat, to_half
from gemmlab.emulator.isa.rounding import NAN, canonical, flush
from gemmlab.emulator.isa.table import opcode
from gemmlab.emulator.lanes import Lanes
from gemmlab.emulator.small_floats import bfloat_of, half_of
from gemmlab.ir.types import F64


def _of_turns(name: str) -> Callable[[Lanes], Lanes]:
    def function(value: Lanes) -> Lanes:
        """Return the function of an angle in turns; whole turns are subtracted first, exactly; -0 stays -0."""
        rest = value - value.call("roundeven")
        turns = rest.eq(0.0).select(value * 0.0, rest)
        return (turns * 6.283185307179586476925).call(name)

    return function


def _tanh(value: Lanes) -> Lanes:
    def one(lane: Lanes) -> Lanes:
        return Lanes(lane.fn.call_external("tanh", F64, [F64], lane.value))

    return value.map(one)


_FUNCTIONS: dict[str, Callable[[Lanes], Lanes]] = {
    "RCP": lambda value: value.like(1.0) / value,
    "RSQ": lambda value: value.like(1.0) / value.call("sqrt"),
    "SQRT": lambda value: value.call("sqrt"),
    "LG2": lambda value: value.call("log2"),
    "EX2": lambda value: value.call("exp2"),
    "SIN": _of_turns("sin"),
    "COS": _of_turns("cos"),
    "TANH": _tanh,
}
_WIDE = {"RCP64H": "RCP", "RSQ64H": "RSQ"}


@opcode("MUFU")
def mufu(x: Form) -> None:
    """Evaluate one function. For 16-bit floats, `.H1` selects the upper half; the result is in the lower half."""
    x.allow(*_FUNCTIONS, *_WIDE, "F16", "BF16", suffixes=("H0", "H1", "H0_H0", "H1_H1"))
    if x.has(*_WIDE):
        _upper_words(x)
        return
    function = _FUNCTIONS[x.needed(*_FUNCTIONS)]
    d = x.dest()
    narrow = x.has("F16", "BF16")
    if not narrow:
        value = x.source("f32")
        d.set(canonical(_flushed(x, function(_flushed(x, value).widen("f64")).narrow("f32"))))
        return
    operand = x.peek()
    if operand is None or operand.kind != "reg":
        raise x.refuse("not a register")
    upper = int(any(name.startswith("H1") for name in operand.suffix))
    (word,) = x.words(1)
    if x.has("F16"):
        d.set(_cut_to_half(function(x.adjust(operand, half_of(word, upper)).widen("f64")).narrow("f32")))
    else:
        value = _flushed(x, x.adjust(operand, bfloat_of(word, upper)))
        d.set(to_bfloat(_flushed(x, function(value.widen("f64")).narrow("f32")), "RZ"))


def _cut_to_half(value: Lanes) -> Lanes:
    """Return a float32 as FP16, rounded towards zero; infinity if the exponent is too large."""
    bits = to_half(value, "RZ")
    return value.call("fabs").ge(65536.0).select((bits & 0x8000) | 0x7C00, bits)


def _flushed(x: Form, value: Lanes) -> Lanes:
    return value if x.has("TANH") else flush(value)


def _upper_words(x: Form) -> None:
    """Emit code for the upper word of a double's reciprocal or reciprocal root.

    Only the double's upper word is read; its lower word is taken as 0.
    """
    d, value = x.dest(), x.source()
    number = flush((value.zext("i64") << 32).bits("f64"))
    result = flush(_FUNCTIONS[_WIDE[x.one_of(*_WIDE)]](number))
    upper = (result.bits("i64") >> 32).trunc("i32")
    d.set(result.is_nan().select(upper.like(NAN), upper))
