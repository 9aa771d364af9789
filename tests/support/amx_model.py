"""Products by AMX tiles in NumPy, to the bit: parts, TDPBF16PS, passes over k, k-blocks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab.devices.cpu_tiles import tiles_refusal

Array = npt.NDArray[np.float32]
DEPTH = 32
SMALL = {
    3: ((1, 0), (0, 1)),
    6: ((2, 0), (1, 0), (1, 1), (0, 1), (0, 2)),
    9: ((2, 2), (1, 2), (0, 2), (0, 1), (1, 1), (2, 1), (2, 0), (1, 0)),
}
needs_tiles = pytest.mark.usefixtures("tiles")
"""Tests that run with simulated tiles where the processor has none."""
needs_real_tiles = pytest.mark.skipif(bool(tiles_refusal()), reason=f"amx_bf16x6 {tiles_refusal()}")


def parts_of(x: Array) -> list[Array]:
    """Three parts of 8 bits, each rounded to nearest, ties away from zero."""
    found, rest = [], x.astype(np.float32)
    for _ in range(2):
        found.append(((rest.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32))
        rest = rest - found[-1]
    return [*found, rest]


def add_products(c: Array, a: Array, b: Array) -> Array:
    """C + A B for 32 of k: chains over both halves of k, their sum, and C; each step rounded to float32.

    The instruction's chains take even and odd places; k and k + 16 are neighbours there.
    """
    chains = []
    for first in (0, DEPTH // 2):
        total = np.zeros(c.shape, np.float32)
        for k in range(first, first + DEPTH // 2):
            # The product of two bfloat16 is exact in float64, and so is its sum with a float32 but for the last bit.
            total = (np.multiply.outer(a[:, k].astype(np.float64), b[k].astype(np.float64)) + total).astype(np.float32)
        chains.append(total)
    return c + (chains[0] + chains[1])


def product_by_tiles(a: Array, b: Array, products: int = 6) -> Array:
    """A B within one k-block: the small products of all of k, then the high ones."""
    m, n, k = len(a), b.shape[1], a.shape[1]
    deep = -(-k // DEPTH) * DEPTH
    of_a = [np.pad(part, ((0, 0), (0, deep - k))) for part in parts_of(a)]
    of_b = [np.pad(part, ((0, deep - k), (0, 0))) for part in parts_of(b)]
    total = np.zeros((m, n), np.float32)
    for pairs in (SMALL[products], ((0, 0),)):
        for step in range(0, deep, DEPTH):
            for left, right in pairs:
                total = add_products(total, of_a[left][:, step : step + DEPTH], of_b[right][step : step + DEPTH])
    return total
