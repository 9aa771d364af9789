"""Handle an illegal argument: call BLAS's error handlers as the reference BLAS calls them.

The first of these handlers that exists is called:

    1. the handler that `gemmlab_blas_set_xerbla` was given: `void handler(const char *routine, int number)`
    2. the program's own `xerbla_` (Fortran), or `cblas_xerbla` (C)
    3. a line on standard error

Then the BLAS routine returns and C is as it was. The symbols of 2 are weak references: they are found when code is
linked or loaded, absent if nothing defines them, and never defined here, so that another BLAS in the program keeps its
own.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemmlab.codegen.blas.standalone_runtime import BYTES, HANDLER_AT, word
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.types import I8, I32, I64, VOID, pointer
from gemmlab.ir.values import Value

FORTRAN_NAME, C_NAME = "SGEMM ", "cblas_sgemm"
_FORTRAN_HANDLER, C_HANDLER, _ROW_MAJOR_FLAG = "xerbla_", "cblas_xerbla", "RowMajorStrg"
WEAK_SYMBOLS = (_FORTRAN_HANDLER, C_HANDLER, _ROW_MAJOR_FLAG)
ABSENT = 1
"""The address that stands for an undefined weak symbol in code that is linked in memory, where no symbol can be at 0.
In code that is linked into a file, that address is 0.
"""
_FORMATS = {1: "layout is %d\n", 2: "TransA is %d\n", 3: "TransB is %d\n"}
"""The format that `cblas_xerbla` is given, by the number of the argument."""
EXCHANGED = {4: 5, 5: 4, 9: 11, 11: 9}
"""The position in `cblas_sgemm` of each argument that moves when A and B are exchanged (m, n, lda, ldb) -> that of the
argument with which it changes places.
"""

_STANDARD_ERROR = 2


@dataclass(frozen=True, slots=True)
class Errors:
    """The emitted functions that report an illegal argument to the first handler that exists."""

    fortran: Function
    """`illegal_fortran(number)`: `number` is the argument's position in `sgemm_`."""
    c: Function
    """`illegal_c(number, value, row_major)`: `number` is the argument's position in `cblas_sgemm`; `value` is that of
    an enumeration (arguments 1 to 3), and is ignored for others; `row_major` is 1 for a row-major call.
    """


def emit_errors(module: Module) -> Errors:
    """Emit the functions of `Errors`, and the exported `gemmlab_blas_set_xerbla(handler)`; 0 removes a handler."""
    with module.function("gemmlab_blas_set_xerbla", [("handler", BYTES)], exported=True) as fn:
        fn.atomic_store(word(fn, HANDLER_AT), fn.address(fn.args[0]))
        fn.finish()
    return Errors(_emit_fortran(module), _emit_c(module))


def _text(module: Module, name: str, text: str) -> str:
    """Define a constant ASCII text, which ends with a zero byte, and return its symbol."""
    escaped = "".join(f"\\{byte:02X}" for byte in (*text.encode("ascii"), 0))
    return module.variable(name, f'internal constant [{len(text) + 1} x i8] c"{escaped}"')


def _emit_fortran(module: Module) -> Function:
    padded, plain = _text(module, "fortran_padded", FORTRAN_NAME), _text(module, "fortran_name", FORTRAN_NAME.strip())
    message = _text(module, "fortran_message", " ** On entry to %s parameter number %2d had an illegal value\n")
    with module.function("illegal_fortran", [("number", I32)]) as fn:
        (number,) = fn.args
        _handle(fn, plain, number)
        fn.declare(_FORTRAN_HANDLER, f"declare extern_weak void @{_FORTRAN_HANDLER}(ptr, ptr, i64)")
        theirs = fn.symbol(f"@{_FORTRAN_HANDLER}", I8)
        with fn.when(fn.address(theirs) > ABSENT):
            where = fn.scratch(I32, 1)
            where[0] = number
            signature = (BYTES, pointer(I32), I64)
            fn.call_pointer(theirs, VOID, signature, fn.symbol(padded, I8), where, len(FORTRAN_NAME))
            fn.ret()
        _print(fn, message, f"ptr {plain}, i32 {number.name}")
        fn.finish()
    return fn


def _emit_c(module: Module) -> Function:
    name = _text(module, "c_name", C_NAME)
    message = _text(module, "c_message", "Parameter %d to routine %s was incorrect\n")
    formats = {number: _text(module, f"c_format_{number}", text) for number, text in _FORMATS.items()}
    row_major_flag = module.variable(_ROW_MAJOR_FLAG, "extern_weak global i32")
    with module.function("illegal_c", [("number", I32), ("value", I32), ("row_major", I32)]) as fn:
        number, value, row_major = fn.args
        _handle(fn, name, number)
        fn.declare(C_HANDLER, f"declare extern_weak void @{C_HANDLER}(i32, ptr, ptr, ...)")
        with fn.when(fn.address(fn.symbol(f"@{C_HANDLER}", I8)) > ABSENT):
            passed, flag = fn.var(I32, number), fn.symbol(row_major_flag, I32)
            flagged = fn.address(flag) > ABSENT
            # If the flag exists, the handler itself converts the numbers of a row-major call.
            with fn.when(flagged):
                flag[0] = row_major
                for mine, theirs in EXCHANGED.items():
                    exchanged = number.equals(mine) & row_major.differs(0)
                    passed.set(fn.select(exchanged, theirs, passed.read(), I32))
            text = fn.symbol(formats[max(formats)], I8)
            for which, symbol in formats.items():
                text = fn.select(number.equals(which), fn.symbol(symbol, I8), text, BYTES)
            plain = fn.symbol(_text(module, "c_no_format", ""), I8)
            text = fn.select(number > max(formats), plain, text, BYTES)
            arguments = f"i32 {passed.read().name}, ptr {name}, ptr {text.name}, i32 {value.name}"
            fn.line(f"call void (i32, ptr, ptr, ...) @{C_HANDLER}({arguments})")
            with fn.when(flagged):
                flag[0] = 0
            fn.ret()
        _print(fn, message, f"i32 {number.name}, ptr {name}")
        fn.finish()
    return fn


def _handle(fn: Function, name: str, number: Value) -> None:
    """Emit code that, if `gemmlab_blas_set_xerbla` set a handler, calls it and returns from `fn`."""
    handler = fn.atomic_load(word(fn, HANDLER_AT))
    with fn.when(handler.differs(0)):
        fn.call_pointer(fn.cast(handler, I8), VOID, (BYTES, I32), fn.symbol(name, I8), number)
        fn.ret()


def _print(fn: Function, text: str, arguments: str) -> None:
    fn.declare("dprintf", "declare i32 @dprintf(i32, ptr, ...)")
    fn.emit(I32, f"call i32 (i32, ptr, ...) @dprintf(i32 {_STANDARD_ERROR}, ptr {text}, {arguments})")
