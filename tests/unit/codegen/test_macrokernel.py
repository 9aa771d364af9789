"""Cache blocks and the blocked product around the register tile: rows that crowd the cache, and the workspace."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gemmlab.codegen.blocking import Blocks, cache_blocks
from gemmlab.codegen.macrokernel import JOB, emit_engine, workspace_floats
from gemmlab.codegen.microkernel import Tile, best_tile
from gemmlab.ir.compile import compile_object, load_object
from gemmlab.ir.module import Module
from gemmlab.ir.target import host_target

KIB = 1 << 10
PERIOD, SLACK = 128, 2
TILE = best_tile(host_target())
BLOCKS = Blocks(mc=4 * TILE.rows, kc=96, nc=8 * TILE.cols, crowd_period=PERIOD, crowd_slack=SLACK)
SENTINEL = np.float32(-12345.5)
GUARD = 4096
M, N, K = 61, 5 * TILE.cols + 7, 110
_C_TYPES: dict[str, Any] = {"i64": ctypes.c_int64, "float": ctypes.c_float, "ptr": ctypes.c_void_p}


@cache
def job() -> Callable[..., None]:
    """The engine with small blocks, exported."""
    module = Module(host_target())
    engine = emit_engine(module, TILE, BLOCKS).job
    with module.function("under_test", JOB, exported=True) as fn:
        fn.call(engine, *fn.args)
        fn.finish()
    loaded = load_object(compile_object(module.text(), module.target), ["under_test"])
    prototype = ctypes.CFUNCTYPE(None, *(_C_TYPES[str(type_)] for _name, type_ in JOB))
    return prototype(loaded.addresses["under_test"])


def multiply(
    m: int, n: int, k: int, lda: int, *, alpha: float = 1.0, beta: float = 0.0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], bool]:
    """The product of the same matrices at any `lda`, what it should be, and whether A was copied."""
    rng = np.random.default_rng([m, n, k])
    a = np.full((m, lda), np.nan, np.float32)
    a[:, :k] = rng.uniform(-1, 1, (m, k))
    b = rng.uniform(-1, 1, (k, n)).astype(np.float32)
    before = rng.uniform(-1, 1, (m, n)).astype(np.float32)
    c = before.copy()
    floats = workspace_floats(TILE, BLOCKS)
    workspace = np.full(floats + GUARD, SENTINEL)
    place = [array.ctypes.data for array in (a, b, c, workspace)]
    job()(m, n, k, alpha, place[0], lda, 1, place[1], n, 1, beta, place[2], n, place[3])
    assert (workspace[floats:] == SENTINEL).all(), "written beyond the workspace"
    copied = any(_holds(workspace[:floats], row[k - 8 : k]) for row in a)
    exact = alpha * (a[:, :k].astype(np.float64) @ b.astype(np.float64)) + beta * before
    return c, exact.astype(np.float32), copied


def _holds(memory: npt.NDArray[np.float32], part: npt.NDArray[np.float32]) -> bool:
    """Whether a part of a row lies somewhere in memory, side by side."""
    starts = np.flatnonzero(memory[: -part.size] == part[0])
    return any(np.array_equal(memory[start : start + part.size], part) for start in starts)


def test_blocks_follow_from_the_caches() -> None:
    wide, narrow = Tile(12, 2, 16), Tile(6, 2, 8)
    assert cache_blocks(wide, 48 * KIB, 12, 2048 * KIB) == Blocks(168, 768, 1344)
    assert cache_blocks(wide, 32 * KIB, 8, 1024 * KIB) == Blocks(96, 640, 1632, 1024, 2)
    assert cache_blocks(narrow, 32 * KIB, 8, 256 * KIB) == Blocks(12, 1024, 1024)
    assert cache_blocks(Tile(8, 3, 4), 64 * KIB, 4, 1024 * KIB) == Blocks(40, 1536, 672, 4096, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (1.0, 1.0), (0.7, 1.0), (1.0, -0.5)])
@pytest.mark.parametrize("off", range(-SLACK - 2, SLACK + 3))
def test_crowded_rows_are_copied_and_change_no_bit(off: int, alpha: float, beta: float) -> None:
    apart, exact, in_place_copied = multiply(M, N, K, PERIOD * 3 // 2, alpha=alpha, beta=beta)
    crowded, _, copied = multiply(M, N, K, PERIOD + off, alpha=alpha, beta=beta)
    assert not in_place_copied
    assert copied == (abs(off) <= SLACK)
    assert np.array_equal(crowded, apart)
    assert np.allclose(crowded, exact, rtol=0, atol=1e-4)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(TILE.rows - 1, N, K), (TILE.rows + 1, N, K), (M, TILE.cols - 1, K), (M, N, 60)],
)
def test_low_panels_narrow_strips_and_short_blocks_are_read_in_place(m: int, n: int, k: int) -> None:
    result, exact, copied = multiply(m, n, k, PERIOD)
    assert not copied
    assert np.allclose(result, exact, rtol=0, atol=1e-4)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("k", [64, 65, 96, 97, 113, 128])
@pytest.mark.parametrize("n", [TILE.cols, TILE.cols + 1, 4 * TILE.cols, N, 9 * TILE.cols + 3])
@pytest.mark.parametrize("m", [TILE.rows, 2 * TILE.rows, 71, 96, 107, 140])
def test_copies_of_crowded_rows_stay_inside_the_workspace(m: int, n: int, k: int) -> None:
    result, exact, copied = multiply(m, n, k, PERIOD)
    assert copied
    assert np.allclose(result, exact, rtol=0, atol=1e-4)
