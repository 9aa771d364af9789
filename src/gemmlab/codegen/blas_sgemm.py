"""The single-precision matrix product under BLAS's names: Fortran's `sgemm_` and C's `cblas_sgemm`.

Both take matrices by columns in the end, as the reference BLAS does: a row-major call is the column-major call of the
transposed product, with A and B exchanged. For the compiled product, whose C lies by rows, it is one exchange more:

    C      (m x n, by columns, ldc)  =  op(A) op(B)
    C^T    (n x m, by rows, ldc)     =  op(B)^T op(A)^T

The rules about scalars are the reference's: with m or n 0, or with beta 1 and alpha or k 0, nothing is read or written;
alpha 0 reads neither A nor B; beta 0 does not read C. Which loops run is decided in the compiled product, as for
`gemmlab.gemm`; where no workspace is to be had, plain loops that need none.
"""

from __future__ import annotations

from gemmlab.codegen.blas_errors import EXCHANGED, Errors, emit_errors
from gemmlab.codegen.blas_runtime import NativeRuntime, emit_runtime, memory
from gemmlab.codegen.function import Function
from gemmlab.codegen.gemv import update
from gemmlab.codegen.macrokernel import JOB
from gemmlab.codegen.microkernel import FLOATS
from gemmlab.codegen.module import Module
from gemmlab.codegen.product import VECTOR_SERIAL
from gemmlab.codegen.types import F32, I8, I32, I64, Type, pointer
from gemmlab.codegen.values import Value

FORTRAN_SYMBOL, C_SYMBOL = "sgemm_", "cblas_sgemm"
ROW_MAJOR, COLUMN_MAJOR = 101, 102
_NO_TRANS, _TRANS, _CONJ_TRANS = 111, 112, 113

_INT = pointer(I32)
_EXTENTS = ("m", "n", "k")
_BY_COLUMNS: tuple[tuple[str, Type], ...] = (
    ("turned_a", I64), ("turned_b", I64), ("m", I64), ("n", I64), ("k", I64), ("alpha", F32), ("a", FLOATS),
    ("lda", I64), ("b", FLOATS), ("ldb", I64), ("beta", F32), ("c", FLOATS), ("ldc", I64),
)  # fmt: skip


def emit_blas(module: Module, product: Function, workspace_bytes: int, cpus_a_core: int) -> None:
    """Emit both entries around `product`, and what `blas_runtime` and `blas_errors` export."""
    runtime = emit_runtime(module, workspace_bytes, cpus_a_core)
    errors = emit_errors(module)
    check, by_columns = _emit_check(module), _emit_by_columns(module, product, runtime)
    _emit_fortran(module, check, by_columns, errors)
    _emit_c(module, check, by_columns, errors)


def _emit_check(module: Module) -> Function:
    """Emit `check(...)`: number of the first illegal argument of a column-major call after the two flags, or 0."""
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


def _emit_by_columns(module: Module, product: Function, runtime: NativeRuntime) -> Function:
    """Emit `by_columns(...)`: the product of checked arguments."""
    bare = _emit_bare(module)
    with module.function("by_columns", _BY_COLUMNS) as fn:
        turned_a, turned_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = fn.args
        unchanged = (alpha.equals(0.0) | (k < 1)) & beta.equals(1.0)
        with fn.when((m < 1) | (n < 1) | unchanged):
            fn.ret()
        of_b, of_a = _turned(fn, turned_b, ldb), _turned(fn, turned_a, lda)
        job = (n, m, k, alpha, b, *of_b, a, *of_a, beta, c, ldc)
        slot = fn.call(runtime.take)
        with fn.when(slot < 0):
            fn.call(bare, *job)
            fn.ret()
        threads = fn.var(I64, 1)
        with fn.when(m * n * k >= VECTOR_SERIAL):
            threads.set(fn.call(runtime.helped))
        fn.call(product, *job, runtime.workspace(fn, slot), memory(fn), threads)
        runtime.release(fn, slot)
        fn.finish()
    return fn


def _turned(fn: Function, flag: Value, ld: Value) -> tuple[Value, Value]:
    """Row and column stride of op(X)^T for an X that lies by columns."""
    return fn.select(flag.differs(0), 1, ld), fn.select(flag.differs(0), ld, 1)


def _emit_bare(module: Module) -> Function:
    """Emit `bare(...)`: a job's product element by element, in no memory but its operands'."""
    with module.function("bare", JOB[:-1]) as fn:
        m, n, k, alpha, a, a_row, a_col, b, b_row, b_col, beta, c, ldc = fn.args
        # Without products the sum is 0, and so it must stay for an alpha that is infinite or NaN.
        factor = fn.select(k < 1, 0.0, alpha, F32)
        depth = fn.select(alpha.equals(0.0), 0, k)
        with fn.range(m) as i, fn.range(n) as j:
            total = fn.var(F32, 0.0)
            with fn.range(depth) as p:
                total.set(fn.fma(a[a_row * i + a_col * p], b[b_row * p + b_col * j], total.read()))
            update(fn, c + ldc * i + j, total.read(), factor, beta)
        fn.finish()
    return fn


def _emit_fortran(module: Module, check: Function, by_columns: Function, errors: Errors) -> None:
    """Everything by address. The lengths of the two texts come after the arguments, and are of no interest."""
    texts, numbers = pointer(I8), [(name, _INT) for name in _EXTENTS]
    matrices = [("a", FLOATS), ("lda", _INT), ("b", FLOATS), ("ldb", _INT), ("beta", FLOATS), ("c", FLOATS)]
    params = [("transa", texts), ("transb", texts), *numbers, ("alpha", FLOATS), *matrices, ("ldc", _INT)]
    with module.function(FORTRAN_SYMBOL, params, exported=True) as fn:
        transa, transb, m_at, n_at, k_at, alpha, a, lda_at, b, ldb_at, beta, c, ldc_at = fn.args
        flags = [_letter(fn, text, number, errors) for number, text in ((1, transa), (2, transb))]
        m, n, k, lda, ldb, ldc = (fn.convert(fn.load(at), I64) for at in (m_at, n_at, k_at, lda_at, ldb_at, ldc_at))
        wrong = fn.call(check, *flags, m, n, k, lda, ldb, ldc)
        with fn.when(wrong.differs(0)):
            fn.call(errors.fortran, wrong)
            fn.ret()
        fn.call(by_columns, *flags, m, n, k, fn.load(alpha), a, lda, b, ldb, fn.load(beta), c, ldc)
        fn.finish()


def _letter(fn: Function, text: Value, number: int, errors: Errors) -> Value:
    """1 for T and C, 0 for N, in either case; returns from the routine for another letter."""
    lower = fn.load(text) | 0x20
    turned = lower.equals(ord("t")) | lower.equals(ord("c"))
    with fn.when((turned | lower.equals(ord("n"))).equals(0)):
        fn.call(errors.fortran, number)
        fn.ret()
    return fn.zero_extend(turned)


def _emit_c(module: Module, check: Function, by_columns: Function, errors: Errors) -> None:
    head = [("layout", I32), ("trans_a", I32), ("trans_b", I32), *((name, I32) for name in _EXTENTS)]
    matrices = [("a", FLOATS), ("lda", I32), ("b", FLOATS), ("ldb", I32), ("beta", F32), ("c", FLOATS), ("ldc", I32)]
    with module.function(C_SYMBOL, [*head, ("alpha", F32), *matrices], exported=True) as fn:
        layout, trans_a, trans_b, *extents, alpha, a, lda_given, b, ldb_given, beta, c, ldc_given = fn.args
        by_rows = layout.equals(ROW_MAJOR)
        row_major = fn.zero_extend(by_rows, I32)
        with fn.when((by_rows | layout.equals(COLUMN_MAJOR)).equals(0)):
            fn.call(errors.c, 1, layout, 0)
            fn.ret()
        flags = [_enumerated(fn, given, number, row_major, errors) for number, given in ((2, trans_a), (3, trans_b))]
        m, n, k, lda, ldb, ldc = (fn.convert(given, I64) for given in (*extents, lda_given, ldb_given, ldc_given))
        plain = (*flags, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
        exchanged = (flags[1], flags[0], n, m, k, alpha, b, ldb, a, lda, beta, c, ldc)
        chosen = [
            fn.select(by_rows, second, first, type_)
            for first, second, (_name, type_) in zip(plain, exchanged, _BY_COLUMNS, strict=True)
        ]
        checked = [value for value, (_name, type_) in zip(chosen, _BY_COLUMNS, strict=True) if type_ == I64]
        wrong = fn.call(check, *checked)
        with fn.when(wrong.differs(0)):
            number = fn.var(I32, wrong + 1)
            for mine, theirs in EXCHANGED.items():
                number.set(fn.select(by_rows & (wrong + 1).equals(mine), theirs, number.read(), I32))
            fn.call(errors.c, number, 0, row_major)
            fn.ret()
        fn.call(by_columns, *chosen)
        fn.finish()


def _enumerated(fn: Function, given: Value, number: int, row_major: Value, errors: Errors) -> Value:
    """1 for a transposition, 0 for none; returns from the routine for another value."""
    turned = given.equals(_TRANS) | given.equals(_CONJ_TRANS)
    with fn.when((turned | given.equals(_NO_TRANS)).equals(0)):
        fn.call(errors.c, number, given, row_major)
        fn.ret()
    return fn.zero_extend(turned)
