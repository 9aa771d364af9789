"""Products whose every bit is known, and a look into the runtime: what tests of threads and processes share."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from gemmlab import gemm
from gemmlab.codegen.runtime import SLOTS, SLOTS_AT, Runtime

Array = npt.NDArray[np.float32]


def pair(seed: int, n: int = 150) -> tuple[Array, Array, Array]:
    """Two matrices of small integers and their exact product."""
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-4, 5, (n, n)) for _ in range(2))
    # In integers, because NumPy's own BLAS has threads that forks would upset.
    return a.astype(np.float32), b.astype(np.float32), (a @ b).astype(np.float32)


def wrong_after(seconds: float, seed: int, threads: int) -> int:
    """How many of the products computed for so long are wrong."""
    a, b, expected = pair(seed)
    wrong, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        wrong += not np.array_equal(gemm(a, b, threads=threads), expected)
    return wrong


def slots(runtime: Runtime) -> list[int]:
    return [runtime.word(SLOTS_AT + 16 * slot).value for slot in range(SLOTS)]
