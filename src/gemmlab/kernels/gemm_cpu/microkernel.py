"""The innermost tile in vector registers, generated for the processor's width.

The tile of C lives in registers while all of a k-block passes by; a step loads one row of B's strip (2 vectors, on NEON
3), broadcasts MR elements of A and does MR fused multiply-adds with each vector. On AVX2 the tile is 6 x 16, the
article's 16 x 6 kernel for row-major matrices: 12 multiply-adds, 2 loads and 6 broadcasts a step, 15 of 16 registers.
On AVX-512 it is 12 x 32 (24 accumulators of 32 registers), on NEON 8 x 12.

Around it lie the cache blocks of `codegen/macrokernel.py`; their sizes come from this machine's caches by the
formula in `codegen/blocking.py`. MC, KC and NC override it (0: the formula). One thread.
"""

from __future__ import annotations

from dataclasses import replace

from gemmlab.codegen.blocking import Blocks
from gemmlab.codegen.macrokernel import emit_engine, workspace_floats
from gemmlab.codegen.microkernel import best_tile
from gemmlab.codegen.product import emit_scale
from gemmlab.core.program import Config
from gemmlab.ir.function import Function
from gemmlab.ir.target import host_target
from gemmlab.kernels.cpu_kernel import ALL_LAYOUTS, TRANSPOSABLE, Gemm, blocks_for, cpu_kernel, job_arguments, keeps


def _blocks(config: Config, lanes: int) -> Blocks:
    formula = blocks_for(lanes)
    return replace(formula, mc=config["MC"] or formula.mc, kc=config["KC"] or formula.kc, nc=config["NC"] or formula.nc)


def meant(config: Config) -> Config:
    """Return a configuration with each 0 of MC, KC and NC replaced by the formula's value."""
    blocks = _blocks(config, host_target(config["LANES"] or None).lanes)
    return {**config, "MC": blocks.mc, "KC": blocks.kc, "NC": blocks.nc}


def workspace_bytes(_problem: object, config: Config) -> int:
    """Return the bytes of the packed blocks of A and B in a configuration."""
    target = host_target(config["LANES"] or None)
    return 4 * workspace_floats(best_tile(target), _blocks(config, target.lanes))


def emit(fn: Function, g: Gemm) -> None:
    tile = best_tile(g.module.target)
    job = emit_engine(g.module, tile, _blocks(g.config, g.module.lanes)).job
    scale = emit_scale(g.module)
    with fn.choose(g.alpha.equals(0.0) | (g.k < 1)) as empty:
        with empty.yes():
            fn.call(scale, g.m, g.n, g.beta, g.c, g.ldc)
        with empty.no():
            fn.call(job, *job_arguments(fn, g), g.workspace)


KERNEL = cpu_kernel(
    __file__,
    after="packed",
    summary="a register tile in generated vector code, inside cache blocks",
    idea="The tile of C stays in vector registers for a whole k-block, so nearly every instruction is a multiply-add.",
    source="Chinese article on AVX2 SGEMM: its 16x6 tile; loops as in BLIS; AVX-512 and NEON tiles are our own",
    emit=emit,
    args=(*TRANSPOSABLE, "workspace"),
    layouts=ALL_LAYOUTS,
    params={"MC": 0, "KC": 0, "NC": 0},
    tune={"KC": (0, 256, 384, 512), "MC": (0, 120)},
    objection=keeps("MC >= 0", "KC >= 0", "NC >= 0"),
    meant=meant,
    workspace_bytes=workspace_bytes,
)
