"""Single small products, which stay unpacked: they have the bits of packed ones, whatever their place in memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab import gemm

Array = npt.NDArray[np.float32]
LINE = 16


def placed(shape: tuple[int, int], off: int, seed: int) -> Array:
    """A matrix whose rows follow each other, `off` elements past the start of a cache line."""
    elements = shape[0] * shape[1]
    memory = np.empty(elements + 2 * LINE, np.float32)
    start = -(memory.ctypes.data // 4) % LINE + off
    found = memory[start : start + elements].reshape(shape)
    found[:] = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return found


def padded(m: int, n: int) -> Array:
    return np.full((m, n + 3), np.nan, np.float32)[:, :n]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("trans_a", [False, True])
def test_small_products_have_the_bits_of_packed_ones(trans_a: bool, trans_b: bool) -> None:
    for m, n, k in ((2, 3, 5), (17, 33, 19), (64, 64, 64), (97, 128, 128), (250, 64, 250), (100, 101, 99)):
        a = placed((k, m) if trans_a else (m, k), 4, 1)
        b = placed((n, k) if trans_b else (k, n), 0, 2)
        elsewhere = placed((b.shape[0], b.shape[1]), 3, 2)
        assert np.array_equal(b, elsewhere)
        packed = gemm(a, b, trans_a=trans_a, trans_b=trans_b, kernel="microkernel")
        exact = (a.T if trans_a else a).astype(np.float64) @ (b.T if trans_b else b).astype(np.float64)
        assert np.allclose(packed, exact, atol=1e-4)
        for operand in (b, elsewhere):
            for threads in (1, 2):
                out = padded(m, n)
                gemm(a, operand, out=out, trans_a=trans_a, trans_b=trans_b, threads=threads)
                assert out.tobytes() == packed.tobytes(), (m, n, k, threads)


@pytest.mark.in_turns(20)
def test_small_products_take_alpha_beta_and_nan_as_large_ones_do() -> None:
    a, b = placed((60, 70), 1, 3), placed((70, 64), 0, 4)
    b[5, 6] = np.nan
    c = placed((60, 64), 2, 5)
    expected = gemm(a, b, alpha=0.5, beta=-3.0, c=c, kernel="microkernel")
    out = c.copy()
    gemm(a, b, alpha=0.5, beta=-3.0, c=out, out=out)
    assert out.tobytes() == expected.tobytes()
    assert np.isnan(out[:, 6]).all()
    assert np.isfinite(np.delete(out, 6, axis=1)).all()
    assert np.isfinite(gemm(a, np.where(np.isnan(b), 0, b), out=padded(60, 64))).all()
