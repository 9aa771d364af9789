"""C cut into rectangles, one job each, for threads that wait inside compiled code.

K is never cut, so no two threads add to the same element and the result is the same to the bit whatever the number of
threads. The grid is the one whose rectangles cost least (`codegen/thread_grid.py`); if nothing hides packing, the
threads pack B together (`codegen/shared_strips.py`); the workers are in `codegen/pool.py`.

This is also the code behind `gemmlab.gemm`: single rows and columns and stacks of products have separate loops, and the
C and Python entries are in the same object.

MR x NV vectors is the register tile; MC, KC and NC are the cache blocks; 0 stands for the size computed from this
machine's caches (`codegen/blocking.py`). Products of fewer than 2^SERIAL multiply-adds take one thread. Here 0 stands
for 18, or for 17 on a processor that multiplies a vector in two halves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.call_entries import EXPORTS, emit_entries
from gemmlab.codegen.microkernel import LINE, Tile, best_tile
from gemmlab.codegen.product import emit_product, product_workspace_bytes, usual_serial_work
from gemmlab.codegen.thread_division import Problem, ThreadDivision
from gemmlab.codegen.thread_division import divide as divide_c
from gemmlab.core.program import Config
from gemmlab.ir.function import Function
from gemmlab.ir.target import WIDTHS, Target, host_target
from gemmlab.kernels.cpu_kernel import (
    ALL_LAYOUTS,
    ROOM,
    TRANSPOSABLE,
    Gemm,
    blocks_for,
    cpu_kernel,
    job_arguments,
    multiply_add_bytes,
    thread_resources,
)  # fmt: skip


def _serial(config: Config, target: Target) -> int:
    """Return the binary logarithm of the number of multiply-adds below which products use one thread."""
    return config["SERIAL"] or usual_serial_work(target).bit_length() - 1


def tile_of(config: Config, target: Target) -> Tile:
    """Return the register tile of a configuration; a 0 of MR or NV stands for the value of `best_tile`."""
    usual = best_tile(target)
    return Tile(config["MR"] or usual.rows, config["NV"] or usual.vectors, target.lanes)


def blocks_of(config: Config, tile: Tile) -> Blocks:
    """Return the cache blocks of a configuration; 0 stands for the formula's value.

    MC and NC are rounded down to multiples of the tile's rows and columns, but to one tile at least.
    """
    formula = blocks_for(tile.lanes, tile)
    mc, nc = config["MC"] or formula.mc, config["NC"] or formula.nc
    return replace(
        formula, kc=config["KC"] or formula.kc, mc=max(1, mc // tile.rows) * tile.rows,
        nc=max(1, nc // tile.cols) * tile.cols,
    )  # fmt: skip


def _widths() -> list[int]:
    return [width for width in WIDTHS if width <= host_target().lanes]


def objection(config: Config) -> str:
    """Return the reason why a configuration cannot be built here; empty if it can."""
    if min(config[name] for name in ("MC", "KC", "NC", "MR", "NV", "SERIAL")) < 0 or config["SERIAL"] > 40:
        return "MC, KC, NC, MR, NV >= 0 and 0 <= SERIAL <= 40"
    width = config["LANES"] or host_target().lanes
    if width not in _widths():
        return f"LANES is one of 0, {', '.join(map(str, _widths()))} on this processor"
    target = host_target(width)
    tile = tile_of(config, target)
    if tile.rows * tile.vectors + tile.vectors + 1 > target.registers or tile.rows < 2:
        return "MR * NV + NV + 1 <= registers and MR >= 2"
    if tile.rows * tile.unroll % LINE:
        return "MR * unroll % 16 == 0"
    if product_workspace_bytes(tile, blocks_of(config, tile)) > multiply_add_bytes():
        return f"the workspace of a thread is at most {ROOM} times that of the usual blocks"
    return ""


def meant(config: Config) -> Config:
    """Return a configuration with each 0 but that of LANES replaced by the value that it stands for on this machine."""
    target = host_target(config["LANES"] or None)
    tile = tile_of(config, target)
    blocks = blocks_of(config, tile)
    return {
        **config, "MR": tile.rows, "NV": tile.vectors, "MC": blocks.mc, "KC": blocks.kc, "NC": blocks.nc,
        "SERIAL": _serial(config, target),
    }  # fmt: skip


def emit(fn: Function, g: Gemm) -> None:
    tile = tile_of(g.config, g.module.target)
    blocks, serial_work = blocks_of(g.config, tile), 1 << _serial(g.config, g.module.target)
    entry = emit_entries(g.module, blocks, emit_product(g.module, tile, blocks, serial_work), serial_work)
    fn.ret(fn.call(entry, *job_arguments(fn, g), g.threads))


def divide(config: Config, problem: Any, threads: int) -> ThreadDivision:
    """Return the jobs of a `GemmProblem` on up to `threads` threads, in a configuration."""
    target = host_target(config["LANES"] or None)
    tile = tile_of(config, target)
    one = problem
    rows_of_a, rows_of_b = ((ld, 1) if not turned else (1, ld)
                            for ld, turned in ((one.lda, one.trans_a), (one.ldb, one.trans_b)))  # fmt: skip
    k = one.k if one.alpha else 0
    layout = Problem(one.m, one.n, k, *rows_of_a, *rows_of_b)
    return divide_c(layout, threads, tile, blocks_of(config, tile), 1 << _serial(config, target))


KERNEL = cpu_kernel(
    __file__,
    after="microkernel",
    summary="the same on all cores: rectangles of C as jobs for waiting threads",
    idea="Every core computes its own rectangles of C, and work is handed over in less than a microsecond.",
    source="Chinese article on AVX2 SGEMM names threads as the last step; the pool is our own",
    emit=emit,
    args=(*TRANSPOSABLE, "threads"),
    layouts=ALL_LAYOUTS,
    threaded=True,
    divide=divide,
    exports=EXPORTS,
    resources=thread_resources,
    params={"MR": 0, "NV": 0, "MC": 0, "KC": 0, "NC": 0, "SERIAL": 0},
    search={
        "MR": (0, 6, 8, 12, 16, 24), "NV": (0, 1, 2, 3), "MC": (0, 96, 192, 384), "KC": (0, 256, 384, 512, 1024),
        "NC": (0, 1024, 4096), "SERIAL": (0, 16, 18, 22),
    },
    objection=objection,
    meant=meant,
)  # fmt: skip
