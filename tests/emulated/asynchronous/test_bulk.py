"""Bulk copies of contiguous bytes on the emulator, and the small instructions of sm_90."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import Array, hazards, line_of, ran

from gemmlab import TensorMap

FILE = "bulk.cu"
RNG = np.random.default_rng(12)


def bfloat(values: Array) -> Array:
    """Float32 values as the bits of bfloat16, rounded to nearest even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def wide(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def count_up(old: Array, new: Array) -> Array:
    return np.where(old >= new, 0, old + 1)


def count_down(old: Array, new: Array) -> Array:
    return np.where((old == 0) | (old > new), new, old - 1)


CASES: list[tuple[str, Any, Callable[[Array, Array], Array]]] = [
    ("add_u32", np.uint32, np.add), ("add_s32", np.int32, np.add), ("add_u64", np.uint64, np.add),
    ("inc_u32", np.uint32, count_up), ("dec_u32", np.uint32, count_down), ("min_u32", np.uint32, np.minimum),
    ("max_s32", np.int32, np.maximum), ("min_s64", np.int64, np.minimum), ("max_u64", np.uint64, np.maximum),
    ("and_b32", np.uint32, np.bitwise_and), ("or_b64", np.uint64, np.bitwise_or),
    ("xor_b32", np.uint32, np.bitwise_xor),
    ("add_f32", np.float32, np.add), ("add_f64", np.float64, np.add), ("add_f16", np.float16, np.add),
    ("min_f16", np.float16, np.minimum),
]  # fmt: skip


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("kernel", "dtype", "reduce"), CASES, ids=[case[0] for case in CASES])
@pytest.mark.sampled(len(CASES))
def test_reductions_in_global_memory(kernel: str, dtype: Any, reduce: Callable[[Array, Array], Array]) -> None:
    if np.dtype(dtype).kind == "f":
        old, new = (RNG.uniform(-50, 50, 48).astype(dtype) for _ in range(2))
    else:
        old, new = (RNG.integers(0, 256, 48 * 8, np.uint8).view(dtype)[:48].copy() for _ in range(2))
    out = ran(FILE, kernel, 32, new.view(np.uint8), old, np.int32(new.nbytes - 16))[1]
    done = (new.nbytes - 16) // new.itemsize
    assert np.array_equal(out[:done], reduce(old, new)[:done].astype(dtype))
    assert np.array_equal(out[done:], old[done:])


@pytest.mark.parametrize(("kernel", "reduce"), [("add_bf16", np.add), ("max_bf16", np.maximum)])
@pytest.mark.sampled(2)
def test_reductions_of_bfloat16(kernel: str, reduce: Callable[[Array, Array], Array]) -> None:
    old, new = (bfloat(RNG.uniform(-50, 50, 64)) for _ in range(2))
    out = ran(FILE, kernel, 32, new.view(np.uint8), old, np.int32(new.nbytes))[1]
    assert np.array_equal(out, bfloat(reduce(wide(old), wide(new))))


def test_groups_are_waited_for_one_by_one() -> None:
    numbers = np.arange(64, dtype=np.float32)
    out = ran(FILE, "groups", 64, numbers, np.full(192, 9, np.float32))[1]
    assert np.array_equal(out, np.concatenate([numbers, numbers * 2, numbers * 0]))


def test_elections_matrices_and_fences() -> None:
    (out,) = ran(FILE, "small", 32, np.zeros(256, np.uint32))
    assert out[:32].tolist() == [100] + [0] * 31
    assert out[37:64].tolist() == [105] + [5] * 26
    # Lane 4 r + c holds the elements 2 c and 2 c + 1 of row r; matrix i has 64 i added to each.
    tiles = out[64:192].view(np.uint16).reshape(4, 8, 8)
    assert np.array_equal(tiles, np.arange(256).reshape(4, 8, 8))
    assert np.array_equal(out[192:224].view(np.uint16).reshape(8, 8), np.arange(64).reshape(8, 8).T)


@pytest.mark.parametrize(
    ("shift", "offset", "size", "kind", "words"),
    [
        (8, 0, 64, "misaligned", "the source of a bulk copy is no multiple of 16"),
        (0, 8, 64, "misaligned", "the destination of a bulk copy is no multiple of 16"),
        (64, 0, 208, "out of bounds", "a bulk read of 208 bytes of global memory at byte 64 of an allocation of 256"),
        (0, 1008, 2048, "out of bounds", "a bulk read of 2048 bytes"),
        (0, 1024, 64, "out of bounds", "a bulk write of 64 bytes at byte"),
    ],
)
@pytest.mark.sampled(5)
def test_wrong_addresses_end_the_launch(shift: int, offset: int, size: int, kind: str, words: str) -> None:
    numbers = [np.uint32(value) for value in (shift, offset, size)]
    found = hazards(FILE, "wrong", 1, np.zeros(256, np.uint8), *numbers)
    assert found[0].kind == kind
    assert words in found[0].message
    assert found[0].line == line_of(FILE, "LOAD")


def test_what_is_no_tensor_map_is_refused() -> None:
    tensor = TensorMap(np.zeros((8, 16), np.float32), (4, 4))
    assert "no multiple of 64" in hazards(FILE, "no_map", 1, tensor, np.int32(16))[0].message
    flat = TensorMap(np.zeros(128, np.float32), (4,))
    assert (
        "a copy of 2 dimensions with the map FLOAT32 128 at" in hazards(FILE, "no_map", 1, flat, np.int32(0))[0].message
    )
