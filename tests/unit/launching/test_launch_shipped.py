"""Kernels that come with gemmlab are launched by their ids, headers and default parameters included."""

from __future__ import annotations

import numpy as np
import pytest

import gemmlab
from gemmlab.kernels.catalog import find_kernel
from support.cuda_source import needs_compiler

N = 64
A = np.random.default_rng(0).standard_normal((N, N), dtype=np.float32)


@needs_compiler
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("source", "kernel"),
    [("block_tile", "block_tile"), ("block_tile", "block_tile<32, 32, 32, 64>"),
     (str(find_kernel("block_tile").path), "block_tile<32, 32, 32, 64>")],
)  # fmt: skip
def test_a_shipped_kernel_is_launched(source: str, kernel: str) -> None:
    args = {"M": N, "N": N, "K": N, "alpha": 1.0, "A": A, "lda": N, "B": A, "ldb": N, "beta": 0.0,
            "C": np.full_like(A, np.nan), "ldc": N}  # fmt: skip
    done = gemmlab.launch(source, kernel, grid=(N // 32) ** 2, threads=32 * 32, args=args, device="emulated")
    assert done.hazards == ()
    assert isinstance(done.outputs, dict)
    assert np.abs(done.outputs["C"] - A.astype(float) @ A.astype(float)).max() < 1e-4


def test_a_word_that_is_no_kernel_and_a_kernel_of_a_cpu_are_refused() -> None:
    with pytest.raises(gemmlab.UsageError, match=r"no kernel named 'blok_tile'; .*block_tile"):
        gemmlab.launch("blok_tile", "blok_tile", 1, 1, [])
    with pytest.raises(gemmlab.UsageError, match="naive_ijk is a kernel for cpu"):
        gemmlab.launch("naive_ijk", "naive_ijk", 1, 1, [])
