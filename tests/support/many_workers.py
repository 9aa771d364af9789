"""Products on many more workers than there are cores: `GEMMLAB_CACHE_DIR=/tmp/x python -m support.many_workers 64`.

It prints as JSON what it found wrong, the workers that ran, and for how many products packed strips were shared. Turns
of the pool are said to cost nothing, so that products of this size share them. That makes other code under the same
key, so a cache of its own must be named.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

import gemmlab
from gemmlab.codegen import runtime as shared
from gemmlab.codegen import thread_grid
from gemmlab.codegen.pool import AREA

Array = npt.NDArray[np.float32]

SIZES = (
    (96, 128, 128), (257, 515, 1033), (3000, 33, 700), (31, 2000, 900), (513, 1025, 769), (70, 6000, 800),
    (1500, 97, 1700), (1000, 1000, 64),
)  # fmt: skip
"""m, n, k: rectangles of a tile and of many, several k-blocks, more columns than the shared memory holds."""


def cases() -> Iterator[tuple[str, Array, Array]]:
    """Operands by rows, by columns and with gaps. One of them has a NaN and an infinity."""
    rng = np.random.default_rng(5)
    for m, n, k in SIZES:
        left, right = (rng.standard_normal((rows, 2 * k), np.float32) for rows in (m, n))
        gaps = rng.standard_normal((k, 2 * n), np.float32)[:, ::2]
        gaps[k // 2, n // 3], left[m // 2, k // 3] = np.nan, np.inf
        rights = {"rows": gaps.copy(), "columns": right[:, :k].T, "gaps": gaps, "rows apart": right[:, ::2].T}
        for name, b in rights.items():
            yield f"{m}x{n}x{k}, B: {name}", left[:, :k], b
        yield f"{m}x{n}x{k}, A: columns", np.asfortranarray(left[:, :k]), gaps
        yield f"{m}x{n}x{k}, A: gaps", left[:, ::2], gaps


def padded(like: Array) -> Array:
    """An output of that shape with a leading dimension of its own, filled with NaN."""
    return np.full((like.shape[0], like.shape[1] + 5), np.nan, np.float32)[:, : like.shape[1]]


def marked(area: int) -> bool:
    """Whether the shared memory was written to since the last look."""
    word = ctypes.c_uint32.from_address(area)
    written = word.value != _MARK
    word.value = _MARK
    return written


_MARK = 0x7FA55AA5


def close(result: Array, a: Array, b: Array) -> bool:
    """Whether every element is within the bound of a chain of k multiply-adds, with NaN where float64 has them."""
    with np.errstate(invalid="ignore"):
        exact = a.astype(np.float64) @ b.astype(np.float64)
        sizes = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    finite = np.isfinite(exact)
    bound = (a.shape[1] + 2) * 2.0**-24 * sizes[finite]
    same_kind = np.array_equal(result[~finite], exact[~finite].astype(np.float32), equal_nan=True)
    return same_kind and bool((np.abs(result[finite] - exact[finite]) <= bound).all())


def main(threads: int) -> None:
    # The bound is four workers a core.
    shared._WORKERS_A_CORE = threads
    assert "GEMMLAB_CACHE_DIR" in os.environ
    thread_grid.TURN = 0
    gemmlab.gemm(np.ones((700, 700), np.float32), np.ones((700, 700), np.float32), threads=threads)
    marked(shared.runtime().word(AREA).value)
    wrong: list[str] = []
    used = 0
    for name, a, b in cases():
        serial = gemmlab.gemm(a, b, threads=1)
        if not close(serial, a, b):
            wrong.append(f"{name} on one thread")
        for repeat in range(2):
            out = padded(serial)
            gemmlab.gemm(a, b, out=out, threads=threads)
            used += marked(shared.runtime().word(AREA).value)
            if out.tobytes() != serial.tobytes():
                wrong.append(f"{name}, call {repeat}")
        twice = gemmlab.gemm(a, b, alpha=0.5, beta=-2.0, c=serial, threads=threads)
        if twice.tobytes() != gemmlab.gemm(a, b, alpha=0.5, beta=-2.0, c=serial, threads=1).tobytes():
            wrong.append(f"{name} with alpha and beta")
    a, b = (np.ones((400, 900), np.float32)[:, ::2] for _ in range(2))
    with ThreadPoolExecutor(6) as callers:
        results = list(callers.map(lambda _call: gemmlab.gemm(a, b.T, threads=threads), range(60)))
    wrong += ["callers at once"] * sum(not (result == 450).all() for result in results)
    sys.stdout.write(json.dumps({"wrong": wrong, "workers": shared.runtime().workers, "shared": used}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
