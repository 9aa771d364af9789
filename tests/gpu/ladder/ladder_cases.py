"""Products that the rungs must bear on a GPU: random, around their tiles, thin."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmProblem

RANDOM = 64
MOST = 300
SKINNY = (
    (1, 4099, 300), (4099, 1, 300), (1, 1, 5001), (3, 2000, 7), (2000, 2, 9), (16, 33, 4100), (4100, 5, 1),
    (1, 70_001, 3), (70_001, 1, 3),
)  # fmt: skip
SCALARS = ((1.0, 0.0), (0.5, -1.0), (-1.0, 1.0), (1.0, 0.5))


def random_cases(kernel: Kernel, seed: int) -> list[GemmProblem]:
    """Extents of 1 to `MOST`, rows padded by 0 to 8 elements or by a multiple of 4, every layout the kernel reads."""
    rng = np.random.default_rng(seed)
    cases = []
    for place in range(RANDOM):
        m, n, k = (int(extent) for extent in rng.integers(1, MOST + 1, 3))
        p = GemmProblem(m, n, k, *SCALARS[place % len(SCALARS)]).with_layout(
            kernel.layouts[place % len(kernel.layouts)]
        )
        a, b, c = (int(gap) * (4 if place % 3 == 0 else 1) for gap in rng.integers(0, 9, 3))
        cases.append(replace(p, lda=p.lda + a, ldb=p.ldb + b, ldc=p.ldc + c))
    return cases


def tile_cases(kernel: Kernel) -> list[GemmProblem]:
    """One more, one less and exactly: two tiles along M, one along N, three along K."""
    bm, bn, bk = (kernel.params.get(name, 32) for name in ("BM", "BN", "BK"))
    return [
        GemmProblem(2 * bm + i, bn + j, 3 * bk + k) for i, j, k in itertools.product((-1, 0, 1), repeat=3)
    ]  # fmt: skip


def skinny_cases(kernel: Kernel) -> list[GemmProblem]:
    """A few rows, columns or terms of many, in the layouts that the kernel reads."""
    return [
        GemmProblem(*shape, *SCALARS[place % 2]).with_layout(kernel.layouts[place % len(kernel.layouts)])
        for place, shape in enumerate(SKINNY)
    ]
