"""The whole product by tiles: the extents that tiles compute, and the division among threads."""

from __future__ import annotations

from typing import Any

from gemmlab.codegen.amx.blocked_product import TileBlocks, emit_tiled_engine
from gemmlab.codegen.amx.split import LINES
from gemmlab.codegen.amx.tile_registers import DEPTH
from gemmlab.codegen.product import PRODUCT, Divisible, emit_shares
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module

_LARGE_B = 1 << 22
_LEAST_LINES, _LEAST_K = 128, 64
"""The fewest rows and columns, and the least k, for which tiles are faster than multiply-adds: below them, packing
takes too much of the time.
"""


def emit_tiled_product(
    module: Module, product: Function, blocks: TileBlocks, offset: int, *, everywhere: bool
) -> Function:
    """Emit `tiled_product(*PRODUCT)`, which divides a product among threads that use tiles, or calls `product`.

    It calls `product` if an extent or alpha is 0, and, without `everywhere`, if tiles would be `slower`. `offset` is
    the number of bytes of the workspace that `product` uses. The module has `job` and the pool already.
    """
    job = emit_tiled_engine(module, module["job"], blocks, offset)
    share = emit_shares(module, Divisible(job, LINES, LINES))
    with module.function("tiled_product", PRODUCT) as fn:
        m, n, k, alpha, *_rest = fn.args
        nothing = (m < 1) | (n < 1) | (k < 1) | alpha.equals(0.0)
        with fn.choose(nothing if everywhere else nothing | slower(m, n, k)) as how:
            with how.yes():
                fn.call(product, *fn.args)
            with how.no():
                fn.call(share, *fn.args)
        fn.finish()
    return fn


def slower(m: Any, n: Any, k: Any) -> Any:
    """Return whether tiles are slower than multiply-adds, or hardly faster.

    It depends on the extents alone, so that the result's bits do not depend on the number of threads. Extents are
    numbers, or values of code under construction; so is the result.
    """
    whole = _padded(m, LINES) * _padded(n, LINES) * _padded(k, DEPTH)
    # If B comes from memory, splitting it pays off from so many rows on. At most a quarter of the tiles' work may be
    # zeros.
    thin = (m < 2 * _LEAST_LINES) & (n * k > _LARGE_B)
    return (m < _LEAST_LINES) | (n < _LEAST_LINES) | (k < _LEAST_K) | thin | (whole * 4 > m * n * k * 5)


def _padded(extent: Any, multiple: int) -> Any:
    return (extent + (multiple - 1)) // multiple * multiple
