"""Floating-point CUDA kernels, compiled for several architectures and emulated: bits where IEEE 754 gives them, else
within CUDA's documented errors.
"""

from __future__ import annotations

from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support.exact_floats import Binary
from support.isa_float_cases import CASES, TYPES, Case, source
from support.isa_launch import compiled, launch

ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
COUNT, THREADS, BLOCKS = 250, 64, 4
BY_NAME = {case.name: case for case in CASES}


def values(kind: str, seed: int, limit: float) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Patterns of a type, of magnitudes up to `limit`."""
    form, dtype = TYPES[kind]
    if form is None:
        rng = np.random.default_rng(seed)
        bits = 8 * np.dtype(dtype).itemsize
        whole = rng.integers(0, 1 << 63, COUNT, np.uint64) * np.uint64(2) + rng.integers(0, 2, COUNT, np.uint64)
        spread: npt.NDArray[np.unsignedinteger[Any]] = whole >> rng.integers(64 - bits, 64, COUNT).astype(np.uint64)
        return spread.astype(dtype)
    found: list[int] = []
    while len(found) < COUNT:
        found += [word for word in form.samples(seed, COUNT) if not abs(float(form.number(word))) > limit]
        seed += 1
    return np.array(found[:COUNT], dtype)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_kernel_computes_what_it_says(arch: str, name: str) -> None:
    case = BY_NAME[name]
    code = compiled(source(), "k_divide", arch)
    inputs = [values(kind, 1000 * place + len(name), case.limit) for place, kind in enumerate(case.inputs)]
    if len(inputs) > 1 and case.inputs[0] == case.inputs[1]:
        inputs[1][:20] = inputs[0][:20]
    form, dtype = TYPES[case.result]
    out = np.full(COUNT + 1, 0x5A, dtype)
    outcome = launch(code, f"k_{name}", [*inputs, out], np.int32(COUNT), grid=(BLOCKS, 1, 1), threads=(THREADS, 1, 1))
    assert not len(outcome.events)
    assert out[COUNT] == 0x5A
    for row, got in zip(zip(*inputs, strict=True), out[:COUNT].tolist(), strict=True):
        assert right(case, form, [int(word) for word in row], got), ([hex(int(word)) for word in row], hex(got))


def right(case: Case, form: Binary | None, words: list[int], got: int) -> bool:
    if form is None:
        return got == int(case.expected(*words)) & (1 << 8 * np.dtype(TYPES[case.result][1]).itemsize) - 1
    if not case.ulps:
        return form.same(got, int(case.expected(*words)))
    wanted = case.expected(*(-0.0 if word == form.sign else float(form.number(word)) for word in words))
    expected = form.of(wanted)
    if not isfinite(wanted) or form.special(expected) is not None:
        return form.same(got, expected)
    unit = form.value(1) if form.is_denormal(expected) else abs(form.value(expected ^ 1) - form.value(expected))
    number = form.number(got)
    return isinstance(number, Fraction) and abs(number - Fraction(wanted)) <= Fraction(case.ulps) * max(
        unit, form.value(1)
    )
