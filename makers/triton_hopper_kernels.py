"""Kernels in Triton that use Hopper's asynchronous machine; only `triton_hopper.py` imports them."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201 - Triton reads these functions, which have its types, not Python's
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(
    a, b, c, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.int32 if WHOLE else tl.float32)
    for start in range(0, k, DEPTH):
        steps = start + tl.arange(0, DEPTH)
        left = tl.load(
            a + rows[:, None] * k + steps[None, :], mask=(rows[:, None] < m) & (steps[None, :] < k), other=0.0
        )
        right = tl.load(
            b + steps[:, None] * n + columns[None, :], mask=(steps[:, None] < k) & (columns[None, :] < n), other=0.0
        )
        total = tl.dot(left, right, total, input_precision="tf32", out_dtype=total.dtype)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def described_product(
    a, b, c, m, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, SPECIAL: tl.constexpr,
):  # fmt: skip
    of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [ROWS, DEPTH])
    of_b = tl.make_tensor_descriptor(b, [k, n], [n, 1], [DEPTH, COLUMNS])
    of_c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [ROWS, COLUMNS])
    row, column = tl.program_id(1) * ROWS, tl.program_id(0) * COLUMNS
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in tl.range(0, k, DEPTH, warp_specialize=SPECIAL):
        total = tl.dot(of_a.load([row, start]), of_b.load([start, column]), total)
    of_c.store([row, column], total)


@triton.jit
def copied(x, y, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    of_x = tl.make_tensor_descriptor(x, [m, n], [n, 1], [ROWS, COLUMNS])
    of_y = tl.make_tensor_descriptor(y, [m, n], [n, 1], [ROWS, COLUMNS])
    row, column = tl.program_id(1) * ROWS, tl.program_id(0) * COLUMNS
    of_y.store([row, column], of_x.load([row, column]))


@triton.jit
def softmax(x, y, columns, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    row = tl.program_id(0) * columns
    values = tl.load(x + row + at, mask=at < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row + at, powers / tl.sum(powers, axis=0), mask=at < columns)


@triton.jit
def attention(
    q, k, v, out, rows,
    ROWS: tl.constexpr, STEP: tl.constexpr, DEPTH: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    own, along = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, DEPTH)
    queries = tl.load(q + own[:, None] * DEPTH + along[None, :])
    most = tl.full((ROWS,), -float("inf"), tl.float32)
    sums, total = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS, DEPTH), tl.float32)
    end = (tl.program_id(0) + 1) * ROWS if CAUSAL else rows
    for start in range(0, end, STEP):
        others = start + tl.arange(0, STEP)
        keys = tl.load(k + others[None, :] * DEPTH + along[:, None])
        scores = tl.dot(queries, keys) * 0.125
        if CAUSAL:
            scores = tl.where(own[:, None] >= others[None, :], scores, -float("inf"))
        higher = tl.maximum(most, tl.max(scores, 1))
        weights, scale = tl.exp(scores - higher[:, None]), tl.exp(most - higher)
        values = tl.load(v + others[:, None] * DEPTH + along[None, :])
        total = tl.dot(weights.to(tl.float16), values, total * scale[:, None])
        sums, most = sums * scale + tl.sum(weights, 1), higher
    tl.store(out + own[:, None] * DEPTH + along[None, :], total / sums[:, None])
