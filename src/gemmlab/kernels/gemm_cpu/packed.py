"""Blocks copied into the order they are read in, and a tile of C that is finished before it is stored.

    A: panels of MR rows, k-major             B: strips of NR columns, k-major

       p=0   p=1   p=2                           p=0: [b b b ... b]  NR
      [MR]  [MR]  [MR] ...                       p=1: [b b b ... b]
                                                 p=2: [b b b ... b]

Every load is from the next address, whatever the leading dimensions were, and pages, cache sets and prefetchers are all
used well. The copies cost O(n^2) for O(n^3) work; B's strips are copied by wide loads where its rows are contiguous and
by in-register transposition where its columns are, and the last strip is padded with zeros. The tile loop is left to
the compiler: it compiles MR rows of sums, NR (one vector) wide, and may or may not make vectors of them and keep them
in registers.
"""

from __future__ import annotations

from gemmlab.codegen.microkernel import Tile
from gemmlab.codegen.packing import emit_pack_panel, emit_pack_strip, panel_stride
from gemmlab.core.program import Config
from gemmlab.ir.function import Function
from gemmlab.ir.types import F32
from gemmlab.ir.values import Value
from gemmlab.kernels.cpu_kernel import ALL_LAYOUTS, TRANSPOSABLE, Gemm, cpu_kernel, keeps, scale_row, strides

MR = 4
_WIDEST = 16
"""Floats of the widest vector; a panel or strip is padded to a multiple of at most this."""


def workspace_bytes(_problem: object, config: Config) -> int:
    """Return the bytes of a packed panel of A and a packed block of B, both padded to whole vectors."""
    return 4 * config["KC"] * (_WIDEST + config["NC"] + _WIDEST)


def emit(fn: Function, g: Gemm) -> None:
    tile = Tile(MR, 1, g.module.lanes)
    nr = tile.cols
    pack_strip, pack_panel = emit_pack_strip(g.module, tile), emit_pack_panel(g.module, tile)
    kc, nc = g.config["KC"], g.config["NC"]
    a_row, a_col, b_row, b_col = strides(fn, g)
    a_pack, b_pack = g.workspace, g.workspace + _WIDEST * kc
    with fn.range(g.m) as i:
        scale_row(fn, g, g.c + i * g.ldc)
    with fn.when(g.alpha.differs(0.0)), fn.range(0, g.n, nc) as jc, fn.range(0, g.k, kc) as pc:
        cols, depth = fn.minimum(g.n - jc, nc), fn.minimum(g.k - pc, kc)
        with fn.range(0, cols, nr) as jr:
            strip = g.b + b_row * pc + b_col * (jc + jr)
            fn.call(pack_strip, depth, fn.minimum(cols - jr, nr), strip, b_row, b_col, b_pack + jr * depth)
        with fn.range(0, g.m, MR) as ir:
            rows = fn.minimum(g.m - ir, MR)
            fn.call(pack_panel, rows, depth, g.a + a_row * ir + a_col * pc, a_row, a_col, a_pack)
            with fn.range(0, cols, nr) as jr:
                sums = _tile_sums(fn, tile, depth, a_pack, b_pack + jr * depth)
                with fn.range(rows) as i, fn.range(fn.minimum(cols - jr, nr)) as j:
                    where = g.c + (ir + i) * g.ldc + (jc + jr + j)
                    fn.store(where, fn.fma(g.alpha, sums[i * nr + j], fn.load(where)))


def _tile_sums(fn: Function, tile: Tile, depth: Value, panel: Value, strip: Value) -> Value:
    """Emit MR x NR sums over `depth` steps of a packed panel and strip, and return their address, row by row.

    Sums of rows that the panel lacks are undefined.
    """
    sums = fn.scratch(F32, MR * tile.cols)
    with fn.range(MR * tile.cols) as at:
        sums[at] = 0.0
    with fn.range(depth) as p, fn.range(MR) as i:
        element = panel[p * panel_stride(tile) + i]
        with fn.range(tile.cols) as j:
            sums[i * tile.cols + j] = fn.fma(element, strip[p * tile.cols + j], sums[i * tile.cols + j])
    return sums


KERNEL = cpu_kernel(
    __file__,
    after="cache_block",
    summary="A in panels, B in strips, copied into reading order",
    idea="Packed operands are read strictly forward, whatever the leading dimension, and a tile of C is summed up "
    "before it is stored.",
    source="Chinese article on AVX2 SGEMM: its pack_trans and pack_no_trans",
    emit=emit,
    args=(*TRANSPOSABLE, "workspace"),
    layouts=ALL_LAYOUTS,
    params={"KC": 256, "NC": 512},
    tune={"KC": (128, 256, 512), "NC": (256, 512, 1024)},
    objection=keeps("KC > 0", "NC > 0", f"NC % {_WIDEST} == 0"),
    workspace_bytes=workspace_bytes,
    vectorize=True,
)
