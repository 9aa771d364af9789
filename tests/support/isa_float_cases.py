"""Floating-point expressions of CUDA, and what each has to give by IEEE 754 or by CUDA's documentation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite, isnan, nan
from typing import Any

import numpy as np

from support.exact_floats import BF16, F16, F32, F64, Binary, integer_of

TYPES: dict[str, tuple[Binary | None, type[np.unsignedinteger[Any]]]] = {
    "float": (F32, np.uint32), "double": (F64, np.uint64), "f16": (F16, np.uint16), "bf16": (BF16, np.uint16),
    "int": (None, np.uint32), "unsigned": (None, np.uint32), "long long": (None, np.uint64),
}  # fmt: skip
S32, U32, S64 = (-(1 << 31), (1 << 31) - 1), (0, (1 << 32) - 1), (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True)
class Case:
    """A kernel `r = code` of `a`, `b`, `c`; `expected` takes and gives patterns, or numbers where `ulps` is not 0."""

    name: str
    result: str
    inputs: tuple[str, ...]
    code: str
    expected: Callable[..., int | float]
    ulps: float = 0
    limit: float = inf
    """Inputs beyond it are left out."""


def quotient(form: Binary) -> Callable[[int, int], int]:
    def of(a: int, b: int) -> int:
        x, y = form.number(a), form.number(b)
        negative = bool((a ^ b) & form.sign)
        if isinstance(x, Fraction) and isinstance(y, Fraction):
            if y:
                return form.of(x / y, negative_zero=negative)
            return form.of(nan if x == 0 else -inf if negative else inf)
        if isnan(x) or isnan(y) or not (isinstance(x, Fraction) or isinstance(y, Fraction)):
            return form.of(nan)
        return form.sign * negative | (0 if isinstance(x, Fraction) else form.infinity)

    return of


def root(form: Binary) -> Callable[[int], int]:
    def of(a: int) -> int:
        number = form.number(a)
        if not isinstance(number, Fraction):
            return form.of(number if number > 0 else nan)
        if number <= 0:
            return a if number == 0 else form.of(nan)
        # Enough bits of the root for one rounding; what is beyond them only tells ties, which roots have none of.
        scale = 2 ** (2 * (form.bias + 2 * form.mantissa))
        return form.of(Fraction(2 * math.isqrt(int(number * scale * scale)) + 1, 2 * scale))

    return of


def remainder(a: int, b: int) -> int:
    x, y = F32.number(a), F32.number(b)
    if isinstance(x, Fraction) and isinstance(y, Fraction) and y:
        rest = abs(x) % abs(y)
        return F32.of(rest) | a & F32.sign
    return a if isinstance(x, Fraction) and not isinstance(y, Fraction) and not isnan(y) else F32.of(nan)


def integer(form: Binary, limits: tuple[int, int], how: str = "TRUNC", not_a_number: int = 0) -> Callable[[int], int]:
    return lambda a: integer_of(form.number(a), *limits, how, not_a_number)


def narrowed(source: Binary, to: Binary, mode: str = "") -> Callable[[int], int]:
    return lambda a: to.of(source.number(a), mode, negative_zero=bool(a & source.sign))


def power(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.power(np.float64(x), np.float64(y)))


def guarded(function: Callable[[float], float], low: float = -inf) -> Callable[[float], float]:
    """A function of `math` with NaN where it is not defined, infinities where it overflows."""

    def of(x: float) -> float:
        if isnan(x) or x < low:
            return nan
        if x == low == 0:
            return -inf if function is math.log else math.copysign(inf, x)
        try:
            return function(x) if isfinite(x) or function not in {math.sin, math.cos} else nan
        except OverflowError:
            return inf

    return of


def signed(bits: int) -> Callable[[int], Fraction]:
    return lambda word: Fraction(word - (1 << bits) if word >> (bits - 1) else word)


def half(code: str) -> str:
    """Of raw 16 bits."""
    return code.replace("#", "__ushort_as_half").replace("@", "__ushort_as_bfloat16")


CASES = (
    Case("divide", "float", ("float", "float"), "a / b", quotient(F32)),
    Case("divide_one", "float", ("float",), "1.0f / a", lambda a: quotient(F32)(F32.of(1.0), a)),
    Case("square_root", "float", ("float",), "sqrtf(a)", root(F32)),
    Case("fused", "float", ("float", "float", "float"), "fmaf(a, b, c)", F32.fused),
    Case("fused_up", "float", ("float",) * 3, "__fmaf_ru(a, b, c)", lambda a, b, c: F32.fused(a, b, c, "RP")),
    Case("sum_down", "float", ("float", "float"), "__fadd_rd(a, b)", lambda a, b: F32.sum(a, b, "RM")),
    Case("remainder", "float", ("float", "float"), "fmodf(a, b)", remainder, limit=1e9),
    Case("divide_double", "double", ("double", "double"), "a / b", quotient(F64)),
    Case("square_root_double", "double", ("double",), "sqrt(a)", root(F64)),
    Case("fused_cut", "double", ("double",) * 3, "__fma_rz(a, b, c)", lambda a, b, c: F64.fused(a, b, c, "RZ")),
    Case("reciprocal_root", "float", ("float",), "rsqrtf(a)", guarded(lambda x: 1 / math.sqrt(x), 0.0), 2),
    Case("exponential", "float", ("float",), "expf(a)", guarded(math.exp), 2),
    Case("logarithm", "float", ("float",), "logf(a)", guarded(math.log, 0.0), 1),
    Case("sine", "float", ("float",), "sinf(a)", guarded(math.sin), 2),
    Case("cosine", "float", ("float",), "cosf(a)", guarded(math.cos), 2),
    Case("power", "float", ("float", "float"), "powf(a, b)", power, 4, 1e4),
    Case("tangent", "float", ("float",), "tanhf(a)", guarded(math.tanh), 2),
    Case("exponential_double", "double", ("double",), "exp(a)", guarded(math.exp), 1.5),
    Case("logarithm_double", "double", ("double",), "log(a)", guarded(math.log, 0.0), 1.5),
    Case("sine_double", "double", ("double",), "sin(a)", guarded(math.sin), 2),
    Case("half_sum", "f16", ("f16", "f16"), half("__half_as_ushort(#(a) + #(b))"), F16.sum),
    Case("half_product", "f16", ("f16", "f16"), half("__half_as_ushort(#(a) * #(b))"), F16.product),
    Case("half_fused", "f16", ("f16",) * 3, half("__half_as_ushort(__hfma(#(a), #(b), #(c)))"), F16.fused),
    Case("half_quotient", "f16", ("f16", "f16"), half("__half_as_ushort(#(a) / #(b))"), quotient(F16)),
    Case("half_root", "f16", ("f16",), half("__half_as_ushort(hsqrt(#(a)))"), root(F16)),
    Case("brain_sum", "bf16", ("bf16", "bf16"), half("__bfloat16_as_ushort(@(a) + @(b))"), BF16.sum),
    Case("brain_product", "bf16", ("bf16", "bf16"), half("__bfloat16_as_ushort(@(a) * @(b))"), BF16.product),
    Case("brain_fused", "bf16", ("bf16",) * 3, half("__bfloat16_as_ushort(__hfma(@(a), @(b), @(c)))"), BF16.fused),
    Case("to_half", "f16", ("float",), "__half_as_ushort(__float2half_rn(a))", narrowed(F32, F16)),
    Case("to_half_down", "f16", ("float",), "__half_as_ushort(__float2half_rd(a))", narrowed(F32, F16, "RM")),
    Case("to_half_from_double", "f16", ("double",), "__half_as_ushort(__double2half(a))", narrowed(F64, F16)),
    Case("to_brain", "bf16", ("float",), "__bfloat16_as_ushort(__float2bfloat16_rn(a))", narrowed(F32, BF16)),
    Case("to_brain_cut", "bf16", ("float",), "__bfloat16_as_ushort(__float2bfloat16_rz(a))", narrowed(F32, BF16, "RZ")),
    Case("from_half", "float", ("f16",), half("__half2float(#(a))"), narrowed(F16, F32)),
    Case("from_brain", "float", ("bf16",), half("__bfloat162float(@(a))"), narrowed(BF16, F32)),
    Case("to_float", "float", ("double",), "(float)a", narrowed(F64, F32)),
    Case("to_float_up", "float", ("double",), "__double2float_ru(a)", narrowed(F64, F32, "RP")),
    Case("to_double", "double", ("float",), "a", narrowed(F32, F64)),
    Case("to_int", "int", ("float",), "(int)a", integer(F32, S32)),
    Case("to_unsigned", "unsigned", ("float",), "(unsigned)a", integer(F32, U32)),
    Case("to_long", "long long", ("float",), "(long long)a", integer(F32, S64, not_a_number=S64[0])),
    Case("double_to_int", "int", ("double",), "__double2int_rn(a)", integer(F64, S32, "", S32[0])),
    Case("half_to_int", "int", ("f16",), half("__half2int_ru(#(a))"), integer(F16, S32, "CEIL")),
    Case("from_int", "float", ("int",), "(float)(int)a", lambda a: F32.of(signed(32)(a))),
    Case("from_long", "float", ("long long",), "(float)a", lambda a: F32.of(signed(64)(a))),
    Case("from_long_up", "double", ("long long",), "__ll2double_ru(a)", lambda a: F64.of(signed(64)(a), "RP")),
    Case(
        "half_from_unsigned", "f16", ("unsigned",), "__half_as_ushort(__uint2half_rz(a))",
        lambda a: F16.of(Fraction(a), "RZ"),
    ),
)  # fmt: skip


def source() -> str:
    """All kernels; each is named after its case, behind `k_`."""
    lines = ["#include <cuda_fp16.h>", "#include <cuda_bf16.h>", "typedef unsigned short f16, bf16;"]
    for case in CASES:
        letters = "abc"[: len(case.inputs)]
        parameters = ", ".join(f"const {kind}* p{letter}" for kind, letter in zip(case.inputs, letters, strict=True))
        loads = " ".join(f"{kind} {letter} = p{letter}[i];" for kind, letter in zip(case.inputs, letters, strict=True))
        lines.append(
            f'extern "C" __global__ void k_{case.name}({parameters}, {case.result}* out, int n) {{ '
            "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; "
            f"{loads} out[i] = {case.code}; }}"
        )
    return "\n".join(lines)
