"""The native entries in this process: addresses for other compilers, ctypes functions, and the error handler."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from gemmlab.blas.native import SET_XERBLA, addresses
from gemmlab.codegen.blas.entry_points import C_SYMBOL, FORTRAN_SYMBOL

_INT, _FLOAT, _ADDRESS = ctypes.c_int, ctypes.c_float, ctypes.c_void_p
SIGNATURES: dict[str, tuple[Any, ...]] = {
    FORTRAN_SYMBOL: (_ADDRESS,) * 13,
    C_SYMBOL: (*(_INT,) * 6, _FLOAT, _ADDRESS, _INT, _ADDRESS, _INT, _FLOAT, _ADDRESS, _INT),
}
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int)
_handler: Any = None
"""The callback whose address native code holds; `None` before the first `set_xerbla`. It must not be
freed meanwhile.
"""

Handler = Callable[[str, int], object]


def pointers() -> dict[str, int]:
    """Return the addresses of the functions `sgemm_` and `cblas_sgemm` in this process, which take 32-bit integers and
    can be called from any thread.

    The functions do not hold the interpreter's lock and never call the interpreter, unless `set_xerbla` gave them a
    handler. The first call compiles them, or finds them in the cache; after that their addresses do not change.

    Raises `CompileError`, and `UsageError` on Windows.
    """
    return {name: addresses()[name] for name in SIGNATURES}


@cache
def function(name: str) -> Any:
    """Return the entry `name` as a ctypes function, which takes addresses, ctypes objects and `byref` for pointers."""
    return ctypes.CFUNCTYPE(None, *SIGNATURES[name])(pointers()[name])


def set_xerbla(handler: Handler | None) -> None:
    """Have `handler(routine, number)` called for an illegal argument, by its number in the routine's signature.

    It is called in the thread of the call, which then returns with C unchanged. `None` goes back to the program's own
    `xerbla_` and `cblas_xerbla`, and without these to a line on standard error. Raises `CompileError` and `UsageError`,
    as `pointers`.
    """
    global _handler
    callback = _HANDLER(lambda name, number: handler(name.decode(), number)) if handler else _HANDLER()
    ctypes.CFUNCTYPE(None, _HANDLER)(addresses()[SET_XERBLA])(callback)
    # Only now may the former handler be freed.
    _handler = callback
