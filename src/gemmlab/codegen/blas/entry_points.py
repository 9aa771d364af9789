"""The single-precision matrix product under BLAS's names: Fortran's `sgemm_` and C's `cblas_sgemm`.

A row-major call computes the transposed product column-major, with A and B exchanged, as in the reference BLAS. Its
arguments are checked in the order of that column-major call, and an error names the argument's position in the call
that the program made.
"""

from __future__ import annotations

from gemmlab.codegen.blas.error_handlers import EXCHANGED, Errors, emit_errors
from gemmlab.codegen.blas.sgemm import BY_COLUMNS, emit_by_columns, emit_check
from gemmlab.codegen.blas.standalone_runtime import emit_workspaces
from gemmlab.codegen.blas.threads import emit_threads
from gemmlab.codegen.microkernel import FLOATS
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import F32, I8, I32, I64, pointer
from gemmlab.ir.values import Value

FORTRAN_SYMBOL, C_SYMBOL = "sgemm_", "cblas_sgemm"
ROW_MAJOR, COLUMN_MAJOR = 101, 102
_NO_TRANS, _TRANS, _CONJ_TRANS = 111, 112, 113

_INT = pointer(I32)
_EXTENTS = ("m", "n", "k")


def emit_blas(module: Module, product: Function, workspace_bytes: int, cpus_a_core: int) -> None:
    """Emit both entries around `product`, and the exported functions of `threads.py` and `error_handlers.py`.

    `workspace_bytes` is what `product` needs for each thread; `cpus_a_core` is the number of logical CPUs of a core.
    """
    workspaces = emit_workspaces(module, workspace_bytes)
    errors = emit_errors(module)
    helped = emit_threads(module, workspaces.pages, cpus_a_core)
    check, by_columns = emit_check(module), emit_by_columns(module, product, workspaces, helped)
    _emit_fortran(module, check, by_columns, errors)
    _emit_c(module, check, by_columns, errors)


def _emit_fortran(module: Module, check: Function, by_columns: Function, errors: Errors) -> None:
    """Emit `sgemm_`, which takes all arguments by address.

    Fortran passes the lengths of `transa` and `transb` as further arguments at the end; they are ignored.
    """
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
    """Emit code that reads the letter at `text`, and return its value: 1 for T and C, 0 for N, upper or lower case.

    For another letter, the code reports argument `number` and returns from `sgemm_`.
    """
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
        layout, trans_a, trans_b, *extents, alpha, a, lda_value, b, ldb_value, beta, c, ldc_value = fn.args
        by_rows = layout.equals(ROW_MAJOR)
        row_major = fn.zero_extend(by_rows, I32)
        with fn.when((by_rows | layout.equals(COLUMN_MAJOR)).equals(0)):
            fn.call(errors.c, 1, layout, 0)
            fn.ret()
        flags = [_enumerated(fn, flag, number, row_major, errors) for number, flag in ((2, trans_a), (3, trans_b))]
        m, n, k, lda, ldb, ldc = (fn.convert(argument, I64) for argument in (*extents, lda_value, ldb_value, ldc_value))
        plain = (*flags, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
        exchanged = (flags[1], flags[0], n, m, k, alpha, b, ldb, a, lda, beta, c, ldc)
        chosen = [
            fn.select(by_rows, second, first, type_)
            for first, second, (_name, type_) in zip(plain, exchanged, BY_COLUMNS, strict=True)
        ]
        checked = [value for value, (_name, type_) in zip(chosen, BY_COLUMNS, strict=True) if type_ == I64]
        wrong = fn.call(check, *checked)
        with fn.when(wrong.differs(0)):
            number = fn.var(I32, wrong + 1)
            for mine, theirs in EXCHANGED.items():
                number.set(fn.select(by_rows & (wrong + 1).equals(mine), theirs, number.read(), I32))
            fn.call(errors.c, number, 0, row_major)
            fn.ret()
        fn.call(by_columns, *chosen)
        fn.finish()


def _enumerated(fn: Function, value: Value, number: int, row_major: Value, errors: Errors) -> Value:
    """Emit code that checks an argument, and return its value: 1 for CblasTrans and CblasConjTrans, 0 for CblasNoTrans.

    For another argument, the code reports argument `number` and returns from `cblas_sgemm`.
    """
    turned = value.equals(_TRANS) | value.equals(_CONJ_TRANS)
    with fn.when((turned | value.equals(_NO_TRANS)).equals(0)):
        fn.call(errors.c, number, value, row_major)
        fn.ret()
    return fn.zero_extend(turned)
