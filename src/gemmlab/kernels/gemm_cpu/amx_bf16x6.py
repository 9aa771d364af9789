"""Float32 from AMX tiles: operands in three bfloat16 parts, and the six products of parts that matter.

    a = a1 + a2 + a3       a b = a1 b1                                             high, last
    b = b1 + b2 + b3             + a1 b2 + a2 b1 + a2 b2 + a1 b3 + a3 b1           small, before
                                 + what is left out, at most 2^-23 a b

A tile instruction does 8,192 multiply-adds in 16 cycles, 16 times what two AVX-512 units do. Parts are made while
operands are packed (`codegen/amx/split.py`), a block of 32 x 32 results stays in four of the eight tile registers
(`codegen/amx/block.py`). Blocks whose parts or products could be subnormal, and blocks with infinities or NaN, are
found by the packer's ranges and computed by the multiply-adds of `threaded` (`codegen/amx/blocked_product.py`).

`PRODUCTS` is 6, 9 (nothing left out) or 3 (a2 b2 and the third parts left out, which is less precise than float32).
With `EVERYWHERE` 0 multiply-adds compute the products for which they are faster, as in
`gemmlab.gemm(precision="float32")`.
"""

from __future__ import annotations

from gemmlab.codegen.amx.amx_product import emit_tiled_product
from gemmlab.codegen.amx.blocked_product import tile_blocks
from gemmlab.codegen.call_entries import EXPORTS, emit_entries
from gemmlab.codegen.microkernel import best_tile
from gemmlab.codegen.product import emit_product
from gemmlab.core.hardware import cpu_info
from gemmlab.core.precision import BF16X3, BF16X6, BF16X9
from gemmlab.devices.cpu_tiles import tiles_refusal
from gemmlab.ir.function import Function
from gemmlab.kernels.cpu_kernel import (
    ALL_LAYOUTS,
    TRANSPOSABLE,
    Gemm,
    blocks_for,
    cpu_kernel,
    job_arguments,
    keeps,
    multiply_add_bytes,
    thread_resources,
)  # fmt: skip

PRECISIONS = {3: BF16X3, 6: BF16X6, 9: BF16X9}


def emit(fn: Function, g: Gemm) -> None:
    tile, blocks = best_tile(g.module.target), blocks_for(g.module.lanes)
    everywhere = bool(g.config["EVERYWHERE"])
    tiled = emit_tiled_product(
        g.module, emit_product(g.module, tile, blocks), tile_blocks(cpu_info().l2_bytes, g.config["PRODUCTS"]),
        multiply_add_bytes(), everywhere=everywhere,
    )  # fmt: skip
    entry = emit_entries(g.module, blocks, tiled, small=not everywhere)
    fn.ret(fn.call(entry, *job_arguments(fn, g), g.threads))


KERNEL = cpu_kernel(
    __file__,
    after="threaded",
    branch=True,
    summary="float32 from AMX tiles: six products of bfloat16 parts",
    idea="A tile instruction does 16 times the multiply-adds of the vector units, and six of them make one of float32.",
    source="Henry, Tang, Heinecke 2019: three bfloat16 a float32, six products; packing, ranges and the way back to "
    "multiply-adds are our own",
    emit=emit,
    args=(*TRANSPOSABLE, "threads"),
    layouts=ALL_LAYOUTS,
    params={"PRODUCTS": 6, "EVERYWHERE": 1},
    tune={"LANES": (16,), "PRODUCTS": (6, 9, 3), "EVERYWHERE": (1, 0)},
    # Tiles come with 16 lanes.
    objection=keeps(
        "LANES == 0 or LANES == 16", " or ".join(f"PRODUCTS == {count}" for count in PRECISIONS), "0 <= EVERYWHERE <= 1"
    ),
    threaded=True,
    exports=EXPORTS,
    resources=thread_resources,
    unavailable=tiles_refusal,
    precision=BF16X6,
    precisions=PRECISIONS,
)
