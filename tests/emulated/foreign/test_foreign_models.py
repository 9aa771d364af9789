"""Kernels of other kinds than GEMM: prices, bodies, clusters, programs, sums of few elements, digests and darts."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

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
def test_black_scholes(call: Call) -> None:
    from math import erf

    n, rate, volatility = 300, 0.02, 0.3
    stock, strike = rng().uniform(5, 30, n).astype(f32), rng(1).uniform(1, 100, n).astype(f32)
    years = rng(2).uniform(0.25, 10, n).astype(f32)
    out = call(
        "black_scholes", "black_scholes", 2, 128, np.zeros((n, 2), f32), stock, strike, years, f32(rate),
        f32(volatility), i32(n),
    )  # fmt: skip
    s, x, t = (array.astype(np.float64) for array in (stock, strike, years))
    d1 = (np.log(s / x) + (rate + volatility**2 / 2) * t) / (volatility * np.sqrt(t))
    normal = np.vectorize(lambda d: 0.5 * (1 + erf(d / np.sqrt(2))))
    c1, c2, discount = normal(d1), normal(d1 - volatility * np.sqrt(t)), np.exp(-rate * t)
    np.testing.assert_allclose(out[0][:, 0], s * c1 - x * discount * c2, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(out[0][:, 1], x * discount * (1 - c2) - s * (1 - c1), rtol=1e-3, atol=1e-4)


@pytest.mark.in_turns(20)
def test_n_body(call: Call) -> None:
    n, dt, soft2 = 100, f32(0.01), f32(0.05)
    pos = np.concatenate([rng().standard_normal((n, 3)), rng(1).uniform(0.1, 1, (n, 1))], axis=1).astype(f32)
    vel = rng(2).standard_normal((n, 4)).astype(f32)
    out = call("nbody", "nbody_step", 2, 64, pos, vel, np.zeros_like(pos), i32(n), dt, soft2, smem_bytes=64 * 16)
    p = pos.astype(np.float64)
    r = p[None, :, :3] - p[:, None, :3]
    weight = p[None, :, 3] * ((r**2).sum(axis=2) + float(soft2)) ** -1.5
    v = vel[:, :3] + (r * weight[:, :, None]).sum(axis=1) * float(dt)
    np.testing.assert_allclose(out[1][:, :3], v, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(out[2][:, :3], p[:, :3] + v * float(dt), rtol=1e-4, atol=1e-5)
    assert (out[2][:, 3] == pos[:, 3]).all()


@pytest.mark.in_turns(20)
def test_k_means_step(call: Call) -> None:
    n, k = 500, 6
    centres = (4 * rng().standard_normal((k, 3))).astype(f32)
    points = (centres[rng(1).integers(0, k, n)] + rng(2).standard_normal((n, 3))).astype(f32)
    label = call("kmeans", "assign", 4, 128, points, centres, np.zeros(n, i32), i32(n), i32(k), smem_bytes=k * 12)[2]
    distance = ((points[:, None].astype(np.float64) - centres[None]) ** 2).sum(axis=2)
    assert (label == distance.argmin(axis=1)).mean() > 0.995
    chosen = np.take_along_axis(distance, label[:, None].astype(np.int64), 1)[:, 0]
    np.testing.assert_allclose(chosen, distance.min(axis=1), rtol=1e-5)
    sums, counts = call(
        "kmeans", "accumulate", 4, 128, points, label, np.zeros((k, 3)), np.zeros(k, i32), i32(n), i32(k)
    )[2:]
    assert (counts == np.bincount(label, minlength=k)).all()
    wanted = np.array([points[label == c].astype(np.float64).sum(axis=0) for c in range(k)])
    np.testing.assert_allclose(sums, wanted, rtol=1e-12, atol=1e-9)


@pytest.mark.in_turns(20)
def test_convolution_with_constant_coefficients(call: Call) -> None:
    n = 300
    half = [-0.0012, -0.0041, -0.0073, -0.0027, 0.0202, 0.0664, 0.1271, 0.1793]
    signal = rng().standard_normal(n).astype(f32)
    out = call("convolution", "convolve", 3, 128, signal, np.zeros(n, f32), i32(n))
    wanted = np.convolve(signal.astype(np.float64), [*half, 0.1998, *half[::-1]], mode="same")
    np.testing.assert_allclose(out[1], wanted, rtol=1e-4, atol=1e-6)


(
    HALT, PUSH, ADD, SUB, MUL, DUP, SWAP, JUMP_IF_ZERO, JUMP, LESS, XOR, SHIFT_LEFT, DIVIDE, LOAD, STORE, COUNT,
) = range(16)  # fmt: skip
PROGRAM = [
    (LOAD, 0), (STORE, 3),                                                      # n = input
    (LOAD, 3), (JUMP_IF_ZERO, 24),                                              # while n
    (LOAD, 2), (LOAD, 3), (DUP, 0), (MUL, 0), (ADD, 0), (STORE, 2),             #   sum += n * n
    (LOAD, 3), (PUSH, 3), (LESS, 0), (JUMP_IF_ZERO, 18),                        #   if n < 3
    (LOAD, 2), (PUSH, 5), (XOR, 0), (STORE, 2),                                 #     sum ^= 5
    (LOAD, 3), (PUSH, 1), (SUB, 0), (STORE, 3), (LOAD, 3), (JUMP, 3),           #   n -= 1
    (LOAD, 2), (LOAD, 1), (PUSH, 2), (SHIFT_LEFT, 0), (ADD, 0),                 # sum + (thread << 2)
    (DUP, 0), (COUNT, 0), (SWAP, 0), (PUSH, 3), (DIVIDE, 0), (ADD, 0), (STORE, 2), (HALT, 0),
]  # fmt: skip


def interpreted(n: int, thread: int) -> int:
    total = 0
    for k in range(n, 0, -1):
        total += k * k
        if k < 3:
            total ^= 5
    total += thread << 2
    return total // 3 + total.bit_count()


@pytest.mark.in_turns(20)
def test_virtual_machine(call: Call) -> None:
    n = 90
    inputs = (np.arange(n) * 7 % 23).astype(i32)
    code = np.array(PROGRAM, i32)
    out = call(
        "virtual_machine", "interpret", 2, 64, code, i32(len(code)), inputs, np.zeros(n, i32), np.zeros(n, i32), i32(n),
        i32(10_000),
    )  # fmt: skip
    assert out[2].tolist() == [interpreted(int(value), thread) for thread, value in enumerate(inputs)]


@pytest.mark.in_turns(20)
def test_sum_by_the_last_block(call: Call) -> None:
    n = 5000
    values = rng().standard_normal(n).astype(f32)
    for _ in range(2):
        out = call("reduction", "sum_all<128>", 7, 128, values, np.zeros(7, f32), np.zeros(1, f32), i32(n))
        np.testing.assert_allclose(out[2][0], values.astype(np.float64).sum(), rtol=1e-4)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("type_name", "dtype", "lanes"), [("float", f32, 8), ("double", np.float64, 32)])
def test_sparse_matrix_vector(call: Call, type_name: str, dtype: type[np.floating[Any]], lanes: int) -> None:
    rows, cols = 40, 64
    dense = rng().standard_normal((rows, cols)) * (rng(1).random((rows, cols)) < 0.2)
    dense[7] = 0
    row, column = np.nonzero(dense)
    start = np.searchsorted(row, np.arange(rows + 1)).astype(i32)
    x = rng(2).standard_normal(cols).astype(dtype)
    out = call(
        "spmv", f"spmv_csr<{type_name}, {lanes}>", -(-rows * lanes // 128), 128, i32(rows), start, column.astype(i32),
        dense[row, column].astype(dtype), x, np.zeros(rows, dtype),
    )  # fmt: skip
    np.testing.assert_allclose(out[4], dense.astype(dtype).astype(np.float64) @ x, rtol=1e-4, atol=1e-5)


@pytest.mark.in_turns(20)
def test_sha256(call: Call) -> None:
    n = 40
    lengths = (np.arange(n) * 11 % 56).astype(i32)
    messages = rng().integers(0, 256, (n, 64), dtype=np.uint8)
    out = call("sha256", "sha256_short", 2, 32, messages, lengths, np.zeros((n, 8), np.uint32), i32(n))
    for i in range(n):
        digest = hashlib.sha256(messages[i, : lengths[i]].tobytes()).hexdigest()
        assert "".join(f"{word:08x}" for word in out[2][i]) == digest


@pytest.mark.in_turns(20)
def test_pi_by_darts(call: Call) -> None:
    threads, throws, seed = 128, 40, 12345
    out = call("monte_carlo", "darts", 2, threads // 2, np.uint64(seed), i32(throws), np.zeros(1, np.uint64))
    mask, hits = 2**64 - 1, 0
    for thread in range(threads):
        state = (seed + (thread + 1) * 0x9E3779B97F4A7C15) & mask

        def draw() -> float:
            nonlocal state
            state ^= state >> 12
            state ^= state << 25 & mask
            state ^= state >> 27
            return float((state * 2685821657736338717 & mask) >> 11) / 2**53

        hits += sum(draw() ** 2 + draw() ** 2 < 1 for _ in range(throws))
    assert out[0][0] == hits


@pytest.mark.in_turns(20)
def test_half_precision_gemm_on_tensor_cores(call: Call) -> None:
    m, n, k = 128, 64, 96
    a, b = (rng(seed).standard_normal(shape).astype(np.float16) for seed, shape in enumerate([(m, k), (n, k)]))
    out = call(
        "tensor_gemm", "gemm_f16", (n // 64, m // 64), 128, a.view(np.uint16), b.view(np.uint16), np.zeros((m, n), f32),
        i32(n), i32(k),
    )  # fmt: skip
    np.testing.assert_allclose(out[2], a.astype(np.float64) @ b.T.astype(np.float64), rtol=1e-4, atol=1e-3)
