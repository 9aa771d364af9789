"""The product behind every entry under BLAS's names: column-major matrices, checked and computed.

The compiled product takes a C with contiguous rows, so it computes the transposed product, with A and B exchanged:

    C      (m x n, by columns, ldc)  =  op(A) op(B)
    C^T    (n x m, by rows, ldc)     =  op(B)^T op(A)^T

The rules about scalars are the reference's. If m or n is 0, or if beta is 1 and alpha or k is 0, nothing is read or
written. If alpha is 0, A and B are not read; if beta is 0, C is not read. The compiled product chooses its loops as for
`gemmlab.gemm`. If no workspace is free, plain loops run, which need none.
"""

from __future__ import annotations

from gemmlab.codegen.blas.standalone_runtime import Workspaces, memory
from gemmlab.codegen.gemv import update
from gemmlab.codegen.macrokernel import JOB
from gemmlab.codegen.microkernel import FLOATS
from gemmlab.codegen.thread_division import VECTOR_SERIAL
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I32, I64, Type
from gemmlab.ir.values import Value

BY_COLUMNS: tuple[tuple[str, Type], ...] = (
    ("turned_a", I64), ("turned_b", I64), ("m", I64), ("n", I64), ("k", I64), ("alpha", F32), ("a", FLOATS),
    ("lda", I64), ("b", FLOATS), ("ldb", I64), ("beta", F32), ("c", FLOATS), ("ldc", I64),
)  # fmt: skip


def emit_check(module: Module) -> Function:
    """Emit `check(turned_a, turned_b, m, n, k, lda, ldb, ldc)` for a column-major call.

    It returns the number of the first illegal argument in the order of `sgemm_`, or 0. The flags are 0 or 1 already.
    """
    names = ("turned_a", "turned_b", "m", "n", "k", "lda", "ldb", "ldc")
    with module.function("check", [(name, I64) for name in names], I32) as fn:
        turned_a, turned_b, m, n, k, lda, ldb, ldc = fn.args
        rows_a, rows_b = fn.select(turned_a.differs(0), k, m), fn.select(turned_b.differs(0), n, k)
        rules = {
            3: m < 0,
            4: n < 0,
            5: k < 0,
            8: lda < fn.maximum(1, rows_a),
            10: ldb < fn.maximum(1, rows_b),
            13: ldc < fn.maximum(1, m),
        }
        for number, broken in rules.items():
            with fn.when(broken):
                fn.ret(number)
        fn.finish(0)
    return fn


def emit_by_columns(module: Module, product: Function, workspaces: Workspaces, helped: Function) -> Function:
    """Emit `by_columns(*BY_COLUMNS)`, which computes a column-major call whose arguments are checked.

    `helped` returns the number of threads that may share a product; small products do not call it.
    """
    bare = _emit_bare(module)
    with module.function("by_columns", BY_COLUMNS) as fn:
        turned_a, turned_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = fn.args
        unchanged = (alpha.equals(0.0) | (k < 1)) & beta.equals(1.0)
        with fn.when((m < 1) | (n < 1) | unchanged):
            fn.ret()
        of_b, of_a = _turned(fn, turned_b, ldb), _turned(fn, turned_a, lda)
        job = (n, m, k, alpha, b, *of_b, a, *of_a, beta, c, ldc)
        slot = fn.call(workspaces.take)
        with fn.when(slot < 0):
            fn.call(bare, *job)
            fn.ret()
        threads = fn.var(I64, 1)
        with fn.when(m * n * k >= VECTOR_SERIAL):
            threads.set(fn.call(helped))
        fn.call(product, *job, workspaces.at(fn, slot), memory(fn), threads)
        workspaces.release(fn, slot)
        fn.finish()
    return fn


def _turned(fn: Function, flag: Value, ld: Value) -> tuple[Value, Value]:
    """Return the row and column stride of op(X)^T for a column-major X with leading dimension `ld`.

    op(X) is X^T if `flag` is not 0.
    """
    return fn.select(flag.differs(0), 1, ld), fn.select(flag.differs(0), ld, 1)


def _emit_bare(module: Module) -> Function:
    """Emit `bare(...)`, with the arguments `JOB` but no workspace: C element by element; alpha and k may be 0."""
    with module.function("bare", JOB[:-1]) as fn:
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc = fn.args
        # Without products the sum is 0, and must stay 0 even if alpha is infinite or NaN.
        factor = fn.select(k < 1, 0.0, alpha, F32)
        depth = fn.select(alpha.equals(0.0), 0, k)
        with fn.range(m) as i, fn.range(n) as j:
            total = fn.var(F32, 0.0)
            with fn.range(depth) as p:
                total.set(fn.fma(a[a_row * i + a_col * p], b[b_row * p + b_col * j], total.read()))
            update(fn, c + ldc * i + j, total.read(), factor, beta)
        fn.finish()
    return fn
