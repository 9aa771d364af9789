"""The special functions against the correctly rounded ones, and where they have no finite value."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from support.exact_floats import BF16, F16, F32, F64, Binary
from support.isa_harness import Rig

INF, NAN = math.inf, math.nan


def log2(value: float) -> float:
    return math.log2(value) if value > 0 else -INF if value == 0 else NAN


def exp2(value: float) -> float:
    return INF if value > 1000 else 2.0**value


def of_turns(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(2 * math.pi * math.fmod(value, 1.0)) if math.isfinite(value) else NAN


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else NAN


def reciprocal(value: float) -> float:
    return 1 / value if value else math.copysign(INF, value)


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "RCP": reciprocal,
    "SQRT": root,
    "RSQ": lambda value: reciprocal(root(value)),
    "LG2": log2,
    "EX2": exp2,
    "SIN": of_turns(math.sin),
    "COS": of_turns(math.cos),
    "TANH": math.tanh,
}


def close(form: Binary, got: int, wanted: float, steps: int) -> bool:
    expected = form.of(float(wanted))
    if form.is_nan(expected) or form.is_nan(got):
        return form.is_nan(expected) and form.is_nan(got)
    return abs((got & (form.sign - 1)) - (expected & (form.sign - 1))) <= steps and (
        not wanted or not got & (form.sign - 1) or got & form.sign == expected & form.sign
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32(name: str) -> None:
    for seed in range(10):
        rig = Rig()
        rig.r[2] = np.array(F32.samples(seed, 32), np.uint32)
        rig.run(f"MUFU.{name} R4, R2")
        for given, got in zip(rig.r[2].tolist(), rig.r[4].tolist(), strict=True):
            flushed = given if name == "TANH" else F32.flushed(given)
            value = float(F32.number(flushed)) if flushed != F32.sign else -0.0
            wanted = FUNCTIONS[name](value)
            if not math.isnan(wanted) and name != "TANH" and abs(wanted) < 2.0**-126:
                wanted = 0.0
            # Near a multiple of half a turn the reference's own reduction is what is not exact.
            small = name in {"SIN", "COS"} and abs(wanted) < 1e-9
            assert close(F32, got, wanted, 1) or (small and abs(float(F32.number(got))) < 1e-9), (hex(given), hex(got))


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("RCP", 0x80000000, 0xFF800000), ("RCP", 0x00000001, 0x7F800000), ("RCP", 0xFF800000, 0x80000000),
        ("RCP", 0x7E800001, 0x00000000), ("RSQ", 0x80000000, 0xFF800000), ("RSQ", 0xBF800000, 0x7FFFFFFF),
        ("SQRT", 0x80000000, 0x80000000), ("SQRT", 0x007FFFFF, 0x00000000), ("LG2", 0x80000000, 0xFF800000),
        ("LG2", 0xFF800000, 0x7FFFFFFF), ("LG2", 0x3F800000, 0x00000000), ("EX2", 0xFF800000, 0x00000000),
        ("EX2", 0xC2FC0001, 0x00000000), ("EX2", 0x43000000, 0x7F800000), ("SIN", 0x80000000, 0x80000000),
        ("SIN", 0xC1000000, 0x80000000), ("SIN", 0x7F800000, 0x7FFFFFFF), ("COS", 0x41000000, 0x3F800000),
        ("TANH", 0x00000001, 0x00000001), ("TANH", 0xFF800000, 0xBF800000),
    ],
)  # fmt: skip
def test_limits(name: str, given: int, wanted: int) -> None:
    rig = Rig()
    rig.r[2] = given
    rig.run(f"MUFU.{name} R4, R2")
    assert {hex(word) for word in rig.r[4].tolist()} == {hex(wanted)}


@pytest.mark.parametrize("name", ["EX2", "TANH"])
@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_sixteen_bits_are_cut_off(kind: str, name: str) -> None:
    form = F16 if kind == "F16" else BF16
    for seed in range(10):
        rig = Rig()
        low, high = form.samples(seed, 32), form.samples(seed + 50, 32)
        rig.r[2] = np.array([one | two << 16 for one, two in zip(low, high, strict=True)], np.uint32)
        for patterns, suffix in ((low, ""), (high, ".H1")):
            rig.run(f"MUFU.{name}.{kind} R4, R2{suffix}")
            for given, got in zip(patterns, rig.r[4].tolist(), strict=True):
                value = float(form.number(given))
                if form is BF16 and name == "EX2" and form.is_denormal(given):
                    value = 0.0
                single = float(F32.number(F32.of(FUNCTIONS[name](value))))
                if form is BF16 and name == "EX2" and abs(single) < 2.0**-126:
                    single = 0.0
                wanted = form.of(single, "RZ", negative_zero=bool(given & form.sign) and name == "TANH")
                if abs(single) >= 65536 and form is F16:
                    wanted = form.infinity
                assert form.same(got, wanted), (hex(given), hex(got), hex(wanted))


@pytest.mark.parametrize("name", ["RCP", "RSQ"])
def test_upper_words_of_doubles(name: str) -> None:
    for seed in range(10):
        rig = Rig()
        patterns = [word & ~0xFFFFFFFF for word in F64.samples(seed, 32)]
        rig.r[2] = np.array([word >> 32 for word in patterns], np.uint32)
        rig.run(f"MUFU.{name}64H R4, R2")
        for given, got in zip(patterns, rig.r[4].tolist(), strict=True):
            value = float(F64.number(F64.flushed(given)))
            value = -0.0 if value == 0 and given & F64.sign else value
            wanted = FUNCTIONS[name](value)
            if math.isnan(wanted):
                assert got == 0x7FFFFFFF
            elif 0 < abs(wanted) < 2.0**-1022:
                assert got & 0x7FFFFFFF == 0
            else:
                expected = F64.of(wanted, negative_zero=math.copysign(1, wanted) < 0)
                assert got == expected >> 32, (hex(given), hex(got))
