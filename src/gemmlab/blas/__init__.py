"""The matrix product under BLAS's names.

`sgemm` is called like `scipy.linalg.blas.sgemm`. `sgemm_` and `cblas_sgemm` are native code behind ctypes, `pointers()`
their addresses for Numba, Cython, C or Fortran in this process; `write_library` puts them into a file for any program.
"""

from __future__ import annotations

from typing import Any

from gemmlab.blas.entries import function, pointers, set_xerbla
from gemmlab.blas.library import write_library
from gemmlab.blas.scipy_names import sgemm

__all__ = ["cblas_sgemm", "pointers", "set_xerbla", "sgemm", "sgemm_", "write_library"]

cblas_sgemm: Any
"""CBLAS's `cblas_sgemm` as a ctypes function: 14 arguments, integers of 32 bits, addresses for a, b and c. It returns
nothing, and for an illegal argument calls the handler (`set_xerbla`). It is compiled at the first access, which may
raise `CompileError`, and on Windows raises `UsageError`.
"""
sgemm_: Any
"""Fortran's `SGEMM` as a ctypes function: 13 addresses (`ctypes.byref`), matrices are stored by columns. Otherwise like
`cblas_sgemm`.
"""


def __getattr__(name: str) -> Any:
    # Compiled at the first access.
    if name in ("cblas_sgemm", "sgemm_"):
        return function(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
