"""A plain tiled product of float32 matrices in Triton with float32's accuracy: by `tl.dot`, or by parts made here.

Only `triton_contestants.py` imports it, once it knows that Triton is installed.
"""

from __future__ import annotations

import triton
import triton.language as tl

BY_HAND = tl.constexpr("bf16x6 by hand")
"""The value of `PRECISION` that does not use an `input_precision` of `tl.dot`."""


def tiled_product(
    a: tl.tensor, b: tl.tensor, c: tl.tensor, m: tl.tensor, n: tl.tensor, k: tl.tensor,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PRECISION: tl.constexpr,
) -> None:  # fmt: skip
    """Store a (m, k) @ b (k, n) to c (m, n): float32, rows without gaps, extents multiples of BM, BN and BK.

    A program computes a tile of C. Programs go through C in strips of `GROUP` rows of tiles. `PRECISION` is an
    `input_precision` of `tl.dot`, or `BY_HAND`: each element becomes three bfloat16 parts, rounded to nearest, and six
    products of parts are added, the smallest first.
    """
    program = tl.program_id(0)
    tiles_n = n // BN
    strip = GROUP * tiles_n
    first = program // strip * GROUP
    height = tl.minimum(m // BM - first, GROUP)
    rows = (first + program % strip % height) * BM + tl.arange(0, BM)
    columns = program % strip // height * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    a_words = a + rows[:, None] * k + steps[None, :]
    b_words = b + steps[:, None] * n + columns[None, :]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k, BK):
        x = tl.load(a_words)
        y = tl.load(b_words)
        if PRECISION == BY_HAND:
            x1 = x.to(tl.bfloat16)
            x_rest = x - x1.to(tl.float32)
            x2 = x_rest.to(tl.bfloat16)
            x3 = (x_rest - x2.to(tl.float32)).to(tl.bfloat16)
            y1 = y.to(tl.bfloat16)
            y_rest = y - y1.to(tl.float32)
            y2 = y_rest.to(tl.bfloat16)
            y3 = (y_rest - y2.to(tl.float32)).to(tl.bfloat16)
            products = tl.dot(x3, y1)
            products = tl.dot(x2, y2, products)
            products = tl.dot(x1, y3, products)
            products = tl.dot(x2, y1, products)
            products = tl.dot(x1, y2, products)
            products = tl.dot(x1, y1, products)
            # The sum of a step is added outside the tensor core, which would cut off its bits beside a large sum.
            sums += products
        else:
            sums = tl.dot(x, y, sums, input_precision=PRECISION)
        a_words += BK
        b_words += BK * n
    tl.store(c + rows[:, None] * n + columns[None, :], sums)


KERNEL = triton.jit(tiled_product)
