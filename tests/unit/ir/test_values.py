"""Numbers and operators of the kernel language mean what they say."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.core.errors import CompileError
from gemmlab.ir.compile import compile_object, load_object
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.target import host_target
from gemmlab.ir.types import F16, F32, F64, I1, I8, I32, I64, Type, pointer, vector
from gemmlab.ir.values import literal
from support.jit import FLOATS, WORDS, doubles, integers, jit, module_of

small = st.integers(-(2**40), 2**40)
naturals = st.integers(0, 2**40)


@given(st.floats(width=32))
def test_a_float_constant_has_the_bits_of_its_value(value: float) -> None:
    text = literal(value, F32)
    stored = struct.unpack("<d", int(text, 16).to_bytes(8, "little"))[0]
    assert np.float32(stored).tobytes() == np.float32(value).tobytes() or math.isnan(value)
    assert math.isnan(stored) == math.isnan(value)


@given(st.floats(min_value=-3e38, max_value=3e38))
def test_a_constant_is_rounded_once(value: float) -> None:
    stored = struct.unpack("<d", int(literal(value, F32), 16).to_bytes(8, "little"))[0]
    assert stored == float(np.float32(value))


def test_compiled_constants_keep_their_bits() -> None:
    values = [0.1, -0.0, 1e-45, 3.4028235e38, math.inf, -math.inf, math.nan, 1 + 2**-23]

    def emit(fn: Function, out: Any) -> None:
        for index, value in enumerate(values):
            out[index] = value
        fn.finish()

    out = np.zeros(len(values), np.float32)
    jit(emit, [FLOATS])(out.ctypes.data)
    assert out.view(np.uint32).tolist() == np.array(values, np.float32).view(np.uint32).tolist()


@pytest.mark.parametrize(("value", "type_"), [(1.5, I64), (math.nan, I64), (7, pointer(F32)), (0.25, I32)])
def test_a_constant_that_a_type_lacks_is_refused(value: float, type_: Type) -> None:
    with pytest.raises((TypeError, ValueError)):
        literal(value, type_)


ARITHMETIC: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], int]]] = {
    "x + y": (lambda x, y: x + y, lambda x, y: x + y),
    "x - y": (lambda x, y: x - y, lambda x, y: x - y),
    "7 - x": (lambda x, _: 7 - x, lambda x, _: 7 - x),
    "3 * x + 5": (lambda x, _: 3 * x + 5, lambda x, _: 3 * x + 5),
    "x // (y + 1)": (lambda x, y: x // (y + 1), lambda x, y: x // (y + 1)),
    "x % (y + 1)": (lambda x, y: x % (y + 1), lambda x, y: x % (y + 1)),
    "x & y": (lambda x, y: x & y, lambda x, y: x & y),
    "x | y": (lambda x, y: x | y, lambda x, y: x | y),
    "x << 3": (lambda x, _: x << 3, lambda x, _: x << 3),
    "x >> 2": (lambda x, _: x >> 2, lambda x, _: x >> 2),
    "x * (y & 255)": (lambda x, y: x * (y & 255), lambda x, y: x * (y & 255)),
}


@pytest.mark.parametrize("text", ARITHMETIC)
def test_integer_arithmetic(text: str) -> None:
    built, meant = ARITHMETIC[text]
    compiled = integers(lambda _fn, x, y: built(x, y))

    @settings(max_examples=40)
    @given(naturals, naturals)
    def same(x: int, y: int) -> None:
        assert compiled(x, y) == meant(x, y)

    same()


@pytest.mark.parametrize("sign", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons_of_integers_and_of_floats_with_nan(sign: str) -> None:
    def built(fn: Function, x: Any, y: Any) -> Any:
        return fn.zero_extend({
            "<": lambda: x < y, "<=": lambda: x <= y, ">": lambda: x > y, ">=": lambda: x >= y,
            "==": lambda: x.equals(y), "!=": lambda: x.differs(y),
        }[sign]())  # fmt: skip

    meant: dict[str, Callable[[float, float], bool]] = {
        "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y,
        "==": lambda x, y: x == y, "!=": lambda x, y: x != y,
    }  # fmt: skip
    whole = integers(built)
    real = jit(lambda fn, x, y: fn.finish(built(fn, x, y)), (F64, F64), I64)
    for x in (-5, 0, 3):
        for y in (-5, 0, 3):
            assert whole(x, y) == meant[sign](x, y)
    for fx in (-1.5, 0.0, -0.0, math.inf, math.nan):
        for fy in (-1.5, 0.0, math.inf, math.nan):
            assert real(fx, fy) == meant[sign](fx, fy), (fx, fy)


def test_choosing_the_smaller_the_larger_and_rounding_up() -> None:
    minimum, maximum = integers(lambda fn, x, y: fn.minimum(x, y)), integers(lambda fn, x, y: fn.maximum(x, y))
    up = integers(lambda fn, x, y: fn.ceil_div(x, y))
    chosen = integers(lambda fn, x, y: fn.select(x < y, x * 2, 9))

    @settings(max_examples=40)
    @given(small, small, naturals, st.integers(1, 1000))
    def laws(x: int, y: int, n: int, d: int) -> None:
        assert (minimum(x, y), maximum(x, y)) == (min(x, y), max(x, y))
        assert up(n, d) == -(-n // d)
        assert chosen(x, y) == (x * 2 if x < y else 9)

    laws()


def test_conversions() -> None:
    narrowed = integers(lambda fn, x, _y: fn.convert(fn.convert(x, I32), I64))
    assert narrowed(2**32 + 5, 0) == 5
    assert narrowed(2**31, 0) == -(2**31)
    single = doubles(lambda fn, x, _y: fn.convert(fn.convert(x, F32), F64))
    assert single(0.1, 0.0) == float(np.float32(0.1))
    assert single(1e300, 0.0) == math.inf
    # It is not run: on a processor without such instructions that would need a library.
    half = module_of(lambda fn, x: fn.finish(fn.convert(fn.convert(x, F16), F32)), (F32,), F32)
    assert "fptrunc float %p0 to half" in half.text()
    assert compile_object(half.text(), half.target)


def test_floats_multiply_add_and_subtract_in_their_own_precision() -> None:
    compiled = doubles(lambda _fn, x, y: (x * y - 1.5) + 2.0 * x)
    for x, y in ((0.1, 0.2), (1e200, 1e-3), (-7.25, 3.0)):
        assert compiled(x, y) == (x * y - 1.5) + 2.0 * x


def test_a_product_of_floats_is_rounded_before_it_is_added() -> None:
    x = 1 + 2.0**-30
    assert doubles(lambda _fn, a, b: a * a + b)(x, -(1 + 2.0**-29)) == 0.0


def test_a_fused_multiply_add_is_rounded_once() -> None:
    # x * x = 1 + 2**-11 + 2**-24 lies half way between two float32; rounding it first loses the last term.
    fused = host_target().fused
    single = jit(lambda fn, x, y: fn.finish(fn.fma(x, x, y)), (F32, F32), F32)
    assert single(1 + 2.0**-12, -(1 + 2.0**-11)) == (2.0**-24 if fused else 0.0)
    double = doubles(lambda fn, x, y: fn.fma(x, x, y))
    assert double(1 + 2.0**-30, -(1 + 2.0**-29)) == (2.0**-60 if fused else 0.0)


def test_pointers_count_in_elements() -> None:
    def emit(fn: Function, words: Any, floats: Any) -> None:
        words[2] = fn.address(words + 3) - fn.address(words)
        words[3] = fn.address(floats + 3) - fn.address(floats)
        fn.cast(fn.address(words) + 8, I64)[0] = words[0] + 1
        fn.finish()

    words = np.array([41, 0, 0, 0], np.int64)
    jit(emit, [WORDS, FLOATS])(words.ctypes.data, words.ctypes.data)
    assert words.tolist() == [41, 42, 24, 12]


def build_with(body: Callable[[Function, Any, Any], object]) -> None:
    module_of(body, (I64, F32))


@pytest.mark.parametrize(
    "body",
    [
        lambda _fn, x, y: x + y,
        lambda _fn, x, y: y * x,
        lambda _fn, x, _y: x + 0.5,
        lambda fn, x, y: fn.constant(x, vector(F32, 4)) + y,
        lambda fn, _x, y: fn.splat(y, 4) + fn.splat(y, 8),
        lambda fn, x, y: fn.minimum(x, y),
        lambda fn, x, y: fn.fma(x, y, y),
        lambda fn, x, _y: fn.call_external("abs", I64, (I64,), x, x),
        lambda fn, _x, y: fn.call_external("abs", I64, (I64,), y),
    ],
)
def test_values_of_different_types_do_not_mix(body: Callable[[Function, Any, Any], object]) -> None:
    with pytest.raises(TypeError):
        build_with(body)


def test_a_value_has_no_truth_while_the_kernel_is_built() -> None:
    for body in (lambda _fn, x, _y: bool(x < 3), lambda fn, _x, _y: bool(fn.var(I64, 0))):
        with pytest.raises(TypeError, match=r"use fn\.when"):
            build_with(body)


def test_malformed_code_is_named_as_such() -> None:
    with pytest.raises(CompileError, match="IR was refused"):
        compile_object("define nonsense", host_target())
    module = Module(host_target())
    with module.function("broken", [("x", I1), ("y", I8)], exported=True) as fn:
        fn.line("store i8 %y, ptr %x")
        fn.finish()
    with pytest.raises(CompileError, match="IR was refused"):
        compile_object(module.text(), host_target())


def test_a_missing_symbol_is_named() -> None:
    module = module_of(lambda fn, x: fn.finish(x), [I64], I64)
    with pytest.raises(CompileError, match="not_there"):
        load_object(compile_object(module.text(), module.target), ["not_there"])
    with pytest.raises(CompileError, match="could not be linked"):
        load_object(b"this is no object file", ["x"])
