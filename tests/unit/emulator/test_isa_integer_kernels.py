"""Integer CUDA kernels, compiled for several architectures and emulated, against Python's integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from support import isa_bit_cases, isa_control_cases, isa_wide_cases
from support.isa_cases import TYPES, Case, source_of
from support.isa_launch import compiled, launch

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90")
CASES = {each.name: each for each in (*isa_wide_cases.CASES, *isa_bit_cases.CASES, *isa_control_cases.CASES)}
SOURCE = source_of(isa_wide_cases.PRELUDE + isa_control_cases.PRELUDE, CASES.values())
COUNT, THREADS, BLOCKS = 250, 64, 4
"""Fewer elements than threads, so that the last warp has lanes that do not take part."""
DTYPES = {
    "u8": np.uint8, "s8": np.int8, "u16": np.uint16, "s16": np.int16, "u32": np.uint32, "s32": np.int32,
    "u64": np.uint64, "s64": np.int64, "count": np.uint32,
}  # fmt: skip
COUNTS = (0, 1, 7, 8, 31, 32, 33, 63, 64, 65, 95, 96, 127, 128, 255, 256, 0x80000000, 0xFFFFFFFF)


def values(kind: str, seed: int) -> npt.NDArray[np.integer[npt.NBitBase]]:
    """Numbers of a type: edges, small ones, ones of any magnitude."""
    rng = np.random.default_rng(seed)
    if kind == "count":
        chosen = np.array([*COUNTS, *rng.integers(0, 130, 64)], np.uint32)
        return rng.choice(chosen, COUNT)
    bits = TYPES[kind][1]
    powers = [1 << place for place in range(bits)]
    edges = [value & (1 << bits) - 1 for power in powers for value in (power - 1, power, -power, power + 1)]
    whole = rng.integers(0, 1 << 63, COUNT, np.uint64) << np.uint64(1) | rng.integers(0, 2, COUNT, np.uint64)
    spread = whole >> rng.integers(64 - bits, 64, COUNT).astype(np.uint64)
    small = rng.integers(0, min(1 << bits, 300), COUNT, np.uint64)
    which = rng.integers(0, 3, COUNT)
    chosen = np.where(which == 0, rng.choice(np.array(edges, np.uint64), COUNT), np.where(which == 1, spread, small))
    return chosen.astype(f"u{bits // 8}").view(DTYPES[kind])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_kernel_computes_what_python_does(arch: str, name: str) -> None:
    code = compiled(SOURCE, "add64", arch, ("--device-int128",))
    case: Case = CASES[name]
    inputs = [values(kind, 31 * number + len(name)) for number, kind in enumerate(case.inputs)]
    out = np.full(COUNT + 1, 0x5A, DTYPES[case.result])
    outcome = launch(code, name, [*inputs, out], np.int32(COUNT), grid=(BLOCKS, 1, 1), threads=(THREADS, 1, 1))
    assert not len(outcome.events)
    assert not outcome.stopped
    bits = TYPES[case.result][1]
    expected = [case.expected(*map(int, row)) & (1 << bits) - 1 for row in zip(*inputs, strict=True)]
    assert [int(value) & (1 << bits) - 1 for value in out[:COUNT]] == expected
    assert out[COUNT] == 0x5A
