"""Tile state: a call leaves none behind, in the caller's thread nor in a child of the process."""

from __future__ import annotations

import ctypes
import os
import threading

import numpy as np
import pytest

import gemmlab
from gemmlab.codegen.amx import tile_registers
from gemmlab.ir.build import load_functions
from gemmlab.ir.module import Module
from gemmlab.ir.types import I64
from support.amx_model import needs_real_tiles

pytestmark = needs_real_tiles
_TILE_STATE = 3 << 17
"""Components of XINUSE: tile configuration and tile data."""


def _emit(module: Module) -> None:
    tile_registers.define_shape(module)
    for name, configured in (("state", False), ("state_within", True)):
        with module.function(name, [], I64, exported=True) as fn:
            if configured:
                tile_registers.configure(fn)
            text = 'call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx}"(i32 1)'
            fn.line(f"%pair = {text}")
            fn.line("%low = extractvalue { i32, i32 } %pair, 0")
            found = fn.emit(I64, "zext i32 %low to i64")
            if configured:
                tile_registers.release(fn)
            fn.finish(found)


@pytest.fixture(scope="module")
def state() -> dict[str, int]:
    return dict(load_functions("tile_state", ["state", "state_within"], _emit).addresses)


def _in_use(address: int) -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(address)()) & _TILE_STATE


def _operands() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    return tuple(generator.standard_normal((256, 256)).astype(np.float32) for _ in range(2))  # type: ignore[return-value]


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_call_leaves_no_tile_state_behind(state: dict[str, int], threads: int) -> None:
    a, b = _operands()
    assert _in_use(state["state_within"])
    for value in (1.0, np.nan):
        a[3, 3] = value
        gemmlab.gemm(a, b, precision="bf16x6", threads=threads)
        assert not _in_use(state["state"])


def test_threads_of_the_caller_and_children_use_tiles(state: dict[str, int]) -> None:
    a, b = _operands()
    expected = gemmlab.gemm(a, b, precision="bf16x6").tobytes()
    found: list[tuple[bytes, int]] = []

    def run() -> None:
        found.append((gemmlab.gemm(a, b, precision="bf16x6", threads=2).tobytes(), _in_use(state["state"])))

    workers = [threading.Thread(target=run) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [(expected, 0)] * 4
    child = os.fork()
    if child == 0:
        os._exit(0 if gemmlab.gemm(a, b, precision="bf16x6", threads=2).tobytes() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
