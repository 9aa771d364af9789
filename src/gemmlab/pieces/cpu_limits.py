"""The CPU's method for a product in pieces, and the method's requirements on pieces. Every piece is computed by the
method of the whole product, so that the bits are the same.

Single rows and columns have separate loops, and small products do not use AMX tiles. A piece that would be computed by
another method than the whole product gets more rows and columns of zeros, whose results are discarded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gemmlab.core.precision import FLOAT_BYTES
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.choice_values import FORCED, RULE, Choice
from gemmlab.dispatch.cpu_forced import forced_product
from gemmlab.dispatch.cpu_gemm import load_product
from gemmlab.dispatch.cpu_precision import cpu_way, forced_way
from gemmlab.dispatch.piece_plan import PiecePlan
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.pieces.block_sources import at_once
from gemmlab.pieces.cut import Limits

Float32Array = npt.NDArray[np.float32]
Multiply = Callable[[Float32Array, Float32Array, Float32Array, float, float, int | None], None]
"""A function `(a, b, c, alpha, beta, threads)` that sets c to alpha * a b + beta * c."""

LIMITS = Limits(tile=(96, 64))
_BY_TILES = "amx_bf16x6"
_FEWEST_LINES, _LINES = 256, 32
"""The fewest rows and columns with which a piece is sure to use AMX tiles, and the rows and columns of the blocks that
they compute: a piece's rows and columns are rounded up to multiples.
"""

_COPIES = 5
"""Copies of a chunk that a store's package holds in memory while it reads or writes the chunk.

To write a part of a chunk, Zarr holds four: the chunk as read and as changed, each encoded and decoded. To read, it
holds three. Some objects are freed late.
"""


@dataclass(frozen=True, slots=True)
class Steps:
    """The strides of the caller's op(a) and op(b) in bytes, each from row to row and from column to column."""

    a: tuple[int, ...]
    b: tuple[int, ...]


def cpu_choice(call: Call, frame: PiecePlan) -> Choice:
    """Return the choice for the whole product. Raises as `gemmlab.gemm` does on a CPU."""
    label = f"{frame.m}x{frame.n}x{frame.k}, precision {call.precision!r}"
    extents = (frame.m, frame.n, frame.k)
    if call.forced:
        way = forced_way(call, extents)
        return Choice(way.kernel.id, way.config, FORCED, "cpu", label, way.reason)
    way = cpu_way(call.least_precision, extents)
    return Choice(way.kernel.id, way.config, RULE, "cpu", label, way.reason)


def cpu_framed(frame: PiecePlan, call: Call, choice: Choice, steps: Steps) -> PiecePlan:
    """Return the plan with `least`, `tile` and `unit` set, so that each piece has the bits of the whole product.

    `least` is the fewest rows and columns with which a piece is computed by the method of the whole product. `tile` is
    the block that AMX tiles compute: its elements decide how it is computed. By multiply-adds the bits do not depend on
    where a piece begins.

    A kernel in a configuration that the caller states has only one method, unless it is `amx_bf16x6` with `EVERYWHERE`
    0: pieces of that one have the method of the whole product if the kernel is not named, too.
    """
    if choice.kernel == _BY_TILES:
        frame = replace(frame, tile=(_LINES, _LINES))
    if choice.kernel == _BY_TILES and call.kernel is None:
        few = 1 if choice.config["EVERYWHERE"] else _FEWEST_LINES
        return replace(frame, least=(few, few), unit=_LINES)
    if call.forced:
        return replace(frame, least=(2, 2)) if call.reproducible else frame
    alone = frame.m == 1 and not call.reproducible
    if frame.n == 1 and not call.reproducible and _along_column(steps):
        return replace(frame, least=(1, 1))
    if alone and _along_row(steps):
        return frame
    return replace(frame, least=(2, 2))


def cpu_limits(frame: PiecePlan) -> Limits:
    """Return the limits of pieces on a CPU. Their workspace is for the chunks of stores that are copied at a time."""

    def workspace(rows: int, cols: int) -> int:
        if not frame.chunk_bytes:
            return 0
        most = max(rows * frame.k * frame.reads, cols * frame.k * frame.reads, rows * cols)
        return _COPIES * max(frame.chunk_bytes, at_once(FLOAT_BYTES * most))

    return replace(LIMITS, workspace=workspace, purpose="chunks of stores")


def multiply_by(call: Call, choice: Choice) -> Multiply:
    """Return the function that computes pieces, compiled and loaded."""
    if call.forced:
        return forced_product(choice.kernel, choice.config).run
    return load_product(call.least_precision if choice.kernel == _BY_TILES else HIGHEST).run


def _along_column(steps: Steps) -> bool:
    """Return whether a product with a single column and with operands of these strides is computed by the separate loop
    for one column (`codegen/product.py`).
    """
    return (steps.a[1] == 4 and steps.b[0] == 4) or steps.a[0] == 4


def _along_row(steps: Steps) -> bool:
    return (steps.b[0] == 4 and steps.a[1] == 4) or steps.b[1] == 4
