"""mma.sync with integers, 8-bit floats and doubles on the emulator, against exact sums."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from warp_matrix_cases import CASES, FILE, WarpMatrix, results

import gemmlab

RECORD = Path(__file__).parents[2] / "data" / "warp_matrices.npz"
LANE = np.arange(32)
G, T = LANE // 4, LANE % 4
Array = np.ndarray[Any, Any]


def launch(kernel: str, arch: str, *arrays: Array) -> Array:
    """The last array after the launch."""
    done = gemmlab.launch(FILE, kernel, args=list(arrays), grid=1, threads=32, device=f"emulated:{arch}")
    assert done.hazards == ()
    assert isinstance(done.outputs, list)
    found: Array = done.outputs[-1]
    return found


def registers(matrix: Array, halves: int) -> Array:
    """Words of a matrix of bytes (rows x k) as each lane's registers."""
    words = np.ascontiguousarray(matrix).view(np.uint32)
    count = halves * words.shape[1] // 4
    found = np.zeros((32, count), np.uint32)
    for number in range(count):
        step, half = divmod(number, halves)
        found[:, number] = words[G + 8 * half, T + 4 * step]
    return found


def padded(words: Array, count: int) -> Array:
    return np.ascontiguousarray(np.pad(words, ((0, 0), (0, count - words.shape[1]))))


def accumulators(matrix: Array) -> Array:
    """Sums (16 x 8, or 8 x 8) as each lane's registers."""
    halves = matrix.shape[0] // 8
    return np.stack([matrix[G + 8 * half, 2 * T + odd] for half in range(halves) for odd in range(2)], axis=1)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
@pytest.mark.parametrize(
    ("kernel", "left", "right", "depth"),
    [("s8_s8_32", np.int8, np.int8, 32), ("u8_s8_32", np.uint8, np.int8, 32), ("u8_u8_16", np.uint8, np.uint8, 16)],
)
@pytest.mark.sampled(2)
def test_integers_are_exact(kernel: str, left: Any, right: Any, depth: int, arch: str) -> None:
    random = np.random.default_rng(7)
    a, b = (random.integers(0, 256, (rows, depth)).astype(np.uint8) for rows in (16, 8))
    c = random.integers(-(1 << 31), 1 << 31, (16, 8))
    wanted = a.view(left).astype(np.int64) @ b.view(right).astype(np.int64).T + c
    if kernel == "u8_s8_32":
        wanted = np.clip(wanted, -(1 << 31), (1 << 31) - 1)
    found = launch(kernel, arch, padded(registers(a, 2), 4), padded(registers(b, 1), 2),
                   np.ascontiguousarray(accumulators(c).astype(np.int32)))  # fmt: skip
    assert np.array_equal(found, accumulators(wanted.astype(np.int32)))


@pytest.mark.in_turns(20)
def test_small_floats_of_sm_89_are_exact_if_nothing_is_lost() -> None:
    random = np.random.default_rng(8)
    values = {0: 0x00, 1: 0x38, 2: 0x40, 3: 0x44}, {0: 0x00, 1: 0x3C, 2: 0x40, 3: 0x42}
    numbers = [random.integers(-3, 4, (rows, 32)) for rows in (16, 8)]
    coded = [
        np.vectorize(lambda number, table=table: table[abs(number)] | 0x80 * (number < 0))(each).astype(np.uint8)
        for each, table in zip(numbers, values, strict=True)
    ]
    c = random.integers(-9, 10, (16, 8)).astype(np.float32)
    found = launch("e4m3_e5m2_32", "sm_89", registers(coded[0], 2), registers(coded[1], 1),
                   np.ascontiguousarray(accumulators(c).view(np.int32)))  # fmt: skip
    assert np.array_equal(found.view(np.float32), accumulators(numbers[0] @ numbers[1].T + c))


@pytest.mark.in_turns(20)
@pytest.mark.skipif(not RECORD.exists(), reason="no GPU's results: makers/warp_matrix_probe.py records them")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel)
def test_recorded_results_of_a_gpu(case: WarpMatrix) -> None:
    with np.load(RECORD, allow_pickle=False) as stored:
        wanted = stored[case.kernel]
    found = results("emulated:sm_90", case)
    differ = found != wanted
    if case.doubles:
        # Which bits a NaN has is no part of the model.
        differ &= ~(np.isnan(found.view(np.float64)) & np.isnan(wanted.view(np.float64)))
    assert not differ.any(), f"{differ.sum()} of {differ.size}"


def chained(a: Array, b: Array, total: float) -> float:
    """Fused multiply-adds in order."""
    for left, right in zip(a, b, strict=True):
        total = float(Fraction(float(left)) * Fraction(float(right)) + Fraction(float(total)))
    return total


@pytest.mark.parametrize(("kernel", "arch", "rows", "depth"), [
    ("doubles_4", "sm_80", 8, 4), ("doubles_4", "sm_90", 8, 4), ("doubles_8", "sm_90", 16, 8),
])  # fmt: skip
def test_doubles_are_chains_of_fused_multiply_adds(kernel: str, arch: str, rows: int, depth: int) -> None:
    random = np.random.default_rng(9)
    a, b, c = (
        random.standard_normal((rows, depth)),
        random.standard_normal((depth, 8)),
        random.standard_normal((rows, 8)),
    )
    halves = rows // 8
    left = np.stack([a[G + 8 * half, T + 4 * step] for step in range(depth // 4) for half in range(halves)], axis=1)
    right = np.stack([b[T + 4 * step, G] for step in range(depth // 4)], axis=1)
    found = launch(
        kernel, arch, np.ascontiguousarray(left), np.ascontiguousarray(right), np.ascontiguousarray(accumulators(c))
    )
    wanted = np.array([[chained(a[row], b[:, column], c[row, column]) for column in range(8)] for row in range(rows)])
    assert np.array_equal(found, accumulators(wanted))
