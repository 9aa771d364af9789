"""Kernels of other kinds than GEMM, written as people write them, against NumPy on every architecture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gemmlab.devices.emulated", reason="there is no emulated device yet")
pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from gemmlab.devices.emulated import ARCHITECTURES
from support.emulated_calls import Call, caller, rng

HERE = Path(__file__).parent
i32, f32 = np.int32, np.float32


@pytest.fixture(params=ARCHITECTURES)
def call(request: pytest.FixtureRequest) -> Call:
    return caller(HERE, request.param)


@pytest.mark.in_turns(20)
def test_look_back_scan(call: Call) -> None:
    n, tile = 512 * 9 + 77, 512
    values = rng().integers(-100, 100, n, dtype=i32)
    tiles = -(-n // tile)
    out = call(
        "scan_lookback",
        "scan",
        tiles,
        128,
        values,
        np.zeros(n, i32),
        i32(n),
        np.zeros(tiles, np.uint64),
        np.zeros(1, i32),
    )
    assert (out[1] == np.cumsum(values, dtype=i32)).all()


@pytest.mark.in_turns(20)
def test_histogram_of_bytes(call: Call) -> None:
    data = (rng().normal(128, 30, 4 * 1500)).clip(0, 255).astype(np.uint8)
    out = call("histogram", "histogram256", 3, 128, data, np.zeros(256, np.uint32), i32(1500))
    assert (out[1] == np.bincount(data, minlength=256)).all()


def test_histogram_of_a_range(call: Call) -> None:
    data = rng().uniform(-1.5, 1.5, 1000).astype(f32)
    data[:3] = np.nan, 1.0, -1.0
    out = call("histogram", "histogram_range", 8, 128, data, np.zeros(13, i32), i32(1000), i32(13), f32(-1), f32(1))
    kept = data[(data >= -1) & (data < 1)]
    bins = np.minimum(((kept - f32(-1)) / f32(2) * f32(13)).astype(i32), 12)
    assert np.abs(out[1] - np.bincount(bins, minlength=13)).sum() == 0


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("type_name", "dtype"), [("float", f32), ("double", np.float64), ("unsigned char", np.uint8)])
def test_transpose(call: Call, type_name: str, dtype: type[np.generic]) -> None:
    rows, cols = 70, 45
    matrix = rng().integers(0, 255, (rows, cols)).astype(dtype)
    out = call(
        "transpose", f"transpose<{type_name}>", (-(-cols // 32), -(-rows // 32)), (32, 8),
        np.zeros((cols, rows), dtype), matrix, i32(cols), i32(rows),
    )  # fmt: skip
    assert (out[0] == matrix.T).all()


@pytest.mark.in_turns(20)
def test_five_point_stencil(call: Call) -> None:
    ny, nx, h2 = 37, 50, f32(0.01)
    u = rng().standard_normal((ny, nx)).astype(f32)
    out = call("stencil", "jacobi5", (-(-nx // 16), -(-ny // 16)), (16, 16), u, np.zeros_like(u), i32(nx), i32(ny), h2)
    wanted = u.copy()
    wanted[1:-1, 1:-1] = 0.25 * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - h2 * u[1:-1, 1:-1])
    np.testing.assert_allclose(out[1], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.in_turns(20)
def test_softmax(call: Call) -> None:
    rows, cols = 5, 333
    x = (4 * rng().standard_normal((rows, cols))).astype(f32)
    out = call("softmax", "softmax_rows", rows, 96, x, np.zeros_like(x), i32(rows), i32(cols))
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out[1], e / e.sum(axis=1, keepdims=True), rtol=2e-5)


@pytest.mark.in_turns(20)
def test_layer_norm(call: Call) -> None:
    rows, cols, eps = 7, 264, 1e-5
    x = rng().standard_normal((rows, cols)).astype(f32)
    gamma, beta = (rng(seed).standard_normal(cols).astype(f32) for seed in (1, 2))
    out = call("layernorm", "layer_norm", 2, 128, x, gamma, beta, np.zeros_like(x), i32(rows), i32(cols), f32(eps))
    wide = x.astype(np.float64)
    normal = (wide - wide.mean(axis=1, keepdims=True)) / np.sqrt(wide.var(axis=1, keepdims=True) + eps)
    np.testing.assert_allclose(out[3], normal * gamma + beta, rtol=1e-4, atol=1e-5)


@pytest.mark.in_turns(20)
def test_matrix_vector(call: Call) -> None:
    m, n, lda = 21, 203, 208
    a, x = rng().standard_normal((m, lda)).astype(f32), rng(1).standard_normal(n).astype(f32)
    out = call("gemv", "gemv<4>", 3, 128, a, x, np.zeros(m, f32), i32(m), i32(n), i32(lda))
    np.testing.assert_allclose(out[2], a[:, :n].astype(np.float64) @ x, rtol=1e-4, atol=1e-5)


@pytest.mark.in_turns(20)
def test_mandelbrot(call: Call) -> None:
    width, height, limit = 48, 30, 64
    corner, step = (f32(-2.1), f32(-1.2)), (f32(0.06), f32(0.08))
    out = call(
        "mandelbrot", "mandelbrot", (2, 8), (32, 4), np.zeros((height, width), i32), i32(width), i32(height),
        *corner, *step, i32(limit),
    )  # fmt: skip
    cx = (corner[0] + np.arange(width, dtype=f32) * step[0])[None, :].repeat(height, 0)
    cy = (corner[1] + np.arange(height, dtype=f32) * step[1])[:, None].repeat(width, 1)
    zx, zy, count = np.zeros_like(cx), np.zeros_like(cx), np.zeros(cx.shape, i32)
    going = np.ones(cx.shape, bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(limit):
            going &= ~(zx * zx + zy * zy > 4)
            zx, zy = np.where(going, zx * zx - zy * zy + cx, zx), np.where(going, f32(2) * zx * zy + cy, zy)
            count += going
    assert (out[0] == count).all()


@pytest.mark.in_turns(20)
def test_bitonic_sort(call: Call) -> None:
    n, tile = 2048, 512
    keys = rng().integers(0, 2**32, n, dtype=np.uint32)
    values = np.arange(n, dtype=np.uint32)
    given = keys
    keys, values = call("bitonic_sort", "sort_tiles", n // tile, tile // 2, keys, values)
    size = 2 * tile
    while size <= n:
        stride = size // 2
        while stride:
            keys, values = call(
                "bitonic_sort", "merge_step", n // 512, 256, keys, values, np.uint32(size), np.uint32(stride)
            )
            stride //= 2
        size *= 2
    assert (keys == np.sort(given)).all()
    assert (given[values] == keys).all()
