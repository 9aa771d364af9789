"""Products for which the strips of B are packed once, for all threads, instead of once for each rectangle of C.

B is cut into blocks, and each is packed by all threads together into memory that they share. In a turn, which is one
call of the pool, they multiply by one block and pack the next one:

    turn 0      pack block 0
    turn 1      pack block 1,  rectangles of C with block 0
    turn 2                     rectangles of C with block 1

A turn ends when all of its jobs are done, so a rectangle meets the k-blocks in the order in which `job` adds them: the
result is the same to the bit. Where a thread's own packing overlaps with its multiply-adds, it is cheaper that each
thread packs for itself; `codegen/thread_grid.py` chooses.
"""

from __future__ import annotations

from collections.abc import Mapping

from gemmlab.codegen.left_block import Left, LeftBlock
from gemmlab.codegen.macrokernel import JOB, Engine, even_block, is_narrow
from gemmlab.codegen.microkernel import FLOATS
from gemmlab.codegen.pool import AREA, AREA_BYTES, TASK_SIGNATURE, pack_words
from gemmlab.codegen.tile_table import Kind, each_panel
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I1, I8, I64, pointer
from gemmlab.ir.values import Operand, Value

_STRIPS_JOB = tuple(argument for argument in JOB if argument[0] not in ("b_row", "b_col"))
HALF = AREA_BYTES // 8
"""The most floats of a block of B: half of the shared memory, as one block is read while the next one is packed."""
_PARTS_A_THREAD = 2
_LEAST_PART = 64
"""The fewest steps of k in a packing job, unless the block has fewer."""

SHARED = (*JOB[:-1], ("pool", pointer(I8)), ("threads", I64), ("rows", I64), ("cols", I64), ("workspace", FLOATS))
"""Arguments as in `macrokernel.JOB` for all of C, the pool, which the caller holds, the number of threads, and the rows
and columns of each thread's rectangle.
"""
_WORDS = (
    "m", "k", "a_row", "a_col", "b_row", "b_col", "ldc", "a", "b", "c", "scalars", "rows",
    "cols", "at", "jc", "pc", "wide", "deep", "next_at", "next_jc", "next_pc", "next_wide", "next_deep", "part",
    "packs",
)  # fmt: skip
"""Words of the task's context. `m` to `c` describe the product, `scalars` is alpha and beta, and `rows` and `cols` are
the extents of a rectangle. `at` to `deep` are the block of B that is multiplied by: its packed address, first column,
first step of k, columns and steps. `next_at` to `next_deep` are the block that is packed. The first `packs` jobs pack,
`part` steps of k each; the others multiply.
"""


def emit_shared_product(module: Module, engine: Engine) -> Function:
    """Emit `shared_product(*SHARED)`: `C = alpha * A B + beta * C` with packed blocks of B that all threads share.

    alpha and all extents are not 0.
    """
    task = _emit_task(module, engine, _emit_strips_job(module, engine))
    tile, blocks = engine.tiles.tile, engine.blocks
    with module.function("shared_product", SHARED) as fn:
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc, pool, threads, rows, cols, workspace = fn.args
        area = fn.cast(fn.load(fn.cast(pool + AREA, I64)), F32)
        kc = even_block(fn, k, blocks.kc, 4)
        across_k = fn.ceil_div(k, kc)
        most = fn.index(HALF) // kc // tile.cols * tile.cols
        nc = fn.ceil_div(fn.ceil_div(n, fn.ceil_div(n, most)), tile.cols) * tile.cols
        count = fn.ceil_div(n, nc) * across_k
        words: Mapping[str, Operand] = dict.fromkeys(_WORDS, 0) | {
            "m": m, "k": k, "a_row": a_row, "a_col": a_col, "b_row": b_row, "b_col": b_col, "ldc": ldc,
            "a": fn.address(a), "b": fn.address(b), "c": fn.address(c), "rows": rows, "cols": cols,
        }  # fmt: skip
        memory = pack_words(fn, [words[name] for name in _WORDS])
        scalars = fn.cast(memory + _WORDS.index("scalars"), F32)
        scalars[0] = alpha
        scalars[1] = beta
        context = _Context(memory)
        with fn.range(0, count + 1) as turn:
            for name in ("at", "jc", "pc", "wide", "deep"):
                context.set(name, context[f"next_{name}"])
            down, over = turn % across_k, turn // across_k
            jc, pc = over * nc, down * kc
            wide, deep = fn.minimum(n - jc, nc), fn.minimum(k - pc, kc)
            strips = fn.maximum(fn.ceil_div(wide, tile.cols), 1)
            parts = fn.minimum(fn.ceil_div(threads * _PARTS_A_THREAD, strips), fn.maximum(deep // _LEAST_PART, 1))
            part = fn.ceil_div(fn.ceil_div(deep, parts), _LEAST_PART) * _LEAST_PART
            packs = fn.select(turn < count, strips * fn.ceil_div(deep, part), 0)
            half = fn.address(area + (turn & 1) * HALF)
            following = (half, jc, pc, wide, deep, part, packs)
            for name, value in zip(_WORDS[_WORDS.index("next_at") :], following, strict=True):
                context.set(name, value)
            rectangles = fn.ceil_div(context["wide"], cols) * fn.ceil_div(m, rows)
            jobs = packs + fn.select(turn > 0, rectangles, 0)
            fn.call(module["pool_share"], pool, fn.function_address(task), memory, jobs, threads, workspace)
        fn.finish()
    return fn


class _Context:
    """The words of a task's context, by name."""

    def __init__(self, memory: Value) -> None:
        self._memory = memory

    def __getitem__(self, name: str) -> Value:
        return self._memory[_WORDS.index(name)]

    def set(self, name: str, value: Operand) -> None:
        self._memory[_WORDS.index(name)] = value


def _emit_task(module: Module, engine: Engine, strips_job: Function) -> Function:
    """Emit the task of a turn: its first jobs pack parts of strips, the others multiply rectangles of C."""
    tile = engine.tiles.tile
    params = list(zip(("context", "job", "workspace"), TASK_SIGNATURE, strict=True))
    with module.function("shared_task", params) as fn:
        memory, job, workspace = fn.args
        context = _Context(memory)
        packs = context["packs"]
        with fn.when(job < packs):
            deep, part = context["next_deep"], context["part"]
            parts = fn.ceil_div(deep, part)
            strip = job // parts
            p, j = (job - strip * parts) * part, strip * tile.cols
            cols = fn.minimum(context["next_wide"] - j, tile.cols)
            width = fn.ceil_div(cols, tile.lanes) * tile.lanes
            b_row, b_col = context["b_row"], context["b_col"]
            source = fn.cast(context["b"], F32) + b_row * (context["next_pc"] + p) + b_col * (context["next_jc"] + j)
            into = fn.cast(context["next_at"], F32) + j * deep + p * width
            fn.call(engine.pack_strip, fn.minimum(deep - p, part), cols, source, b_row, b_col, into)
            fn.ret()
        m, rows, cols, wide, deep = (context[name] for name in ("m", "rows", "cols", "wide", "deep"))
        across = fn.ceil_div(wide, cols)
        number = job - packs
        i, j = number // across * rows, number % across * cols
        scalars = fn.cast(memory + _WORDS.index("scalars"), F32)
        a_row, a_col, ldc, jc, pc = (context[name] for name in ("a_row", "a_col", "ldc", "jc", "pc"))
        a, c, strips = (fn.cast(context[name], F32) for name in ("a", "c", "at"))
        fn.call(
            strips_job, fn.minimum(m - i, rows), fn.minimum(wide - j, cols), deep, scalars[0],
            a + a_row * i + a_col * pc, a_row, a_col, strips + j * deep, fn.select(pc.equals(0), scalars[1], 1.0, F32),
            c + ldc * i + (jc + j), ldc, workspace,
        )  # fmt: skip
        fn.finish()
    return fn


def _emit_strips_job(module: Module, engine: Engine) -> Function:
    """Emit `strips_job(*_STRIPS_JOB)`: as `job` for one k-block, but `b` is B's packed strips, one after the other."""
    tiles, blocks = engine.tiles, engine.blocks
    tile = tiles.tile
    mr, nr = tile.rows, tile.cols
    with module.function("strips_job", _STRIPS_JOB) as fn:
        m, n, k, alpha, a, a_row, a_col, strips, beta, c, ldc, workspace = fn.args
        left = Left.of(fn, tile, blocks, a_row, a_col, n, engine.left_at(workspace))
        of_a = LeftBlock.of(fn, left, k, n)
        mc = fn.select(is_narrow(tile, blocks, m, n), mr, even_block(fn, m, blocks.mc, mr))
        rounds = fn.maximum(k // tile.unroll, 1)
        with fn.range(0, m, mc) as ic:
            mb, a_block = fn.minimum(m - ic, mc), a + a_row * ic
            of_a.pack(tiles, engine.pack_panel, a_block, mb)
            share = fn.ceil_div(k, fn.ceil_div(mb, mr))
            with fn.range(0, n, nr) as jr:
                cols = fn.minimum(n - jr, nr)
                vectors = fn.ceil_div(cols, tile.lanes)
                strip = strips + jr * k
                ahead = jr + nr < n

                def multiply(ir: Value, rows: Value) -> None:
                    a_at, step, apart, origin = of_a.tile_at(a_block, ir, rows)
                    where = c + ldc * (ic + ir) + jr
                    # Each panel's tiles prefetch a share of the next strip.
                    begin = fn.minimum(share * fn.ceil_div(ir, mr), k - share)
                    hints = (
                        strip + (k + begin) * nr,
                        fn.index(nr),
                        fn.select(ahead, share, 0),
                        fn.ceil_div(share, rounds),
                    )
                    shared = (k, a_at, step, strip, vectors * tile.lanes, where, ldc, alpha, beta, cols, *hints)
                    kind = Kind(left.panel, fn.constant(0, I1), apart & jr.equals(0))
                    tiles.call(fn, kind, rows, vectors, shared, (strip, fn.index(0)), (origin, a_row))

                each_panel(fn, tiles, mb, multiply)
        fn.finish()
    return fn
