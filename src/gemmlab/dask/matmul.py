"""`with gemmlab.dask.enabled():` - the operator `@` of float32 Dask arrays is `gemmlab.dask.gemm`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import dask.array as da
import numpy as np

from gemmlab.dask.task_graph import gemm

_PRECISION: ContextVar[str | None] = ContextVar("_PRECISION", default=None)
"""The precision of `@` in this context; `None` if `@` is Dask's own product."""
_LOCK = threading.Lock()
_users = 0
_own: Callable[[da.Array, Any], Any] = da.Array.__matmul__


@contextmanager
def enabled(precision: str = "highest") -> Iterator[None]:
    """Let `a @ b` of two-dimensional float32 Dask arrays mean `gemmlab.dask.gemm(a, b, precision=precision)`.

    It applies to expressions that this thread or asyncio task evaluates inside the block. For other dtypes, other
    numbers of dimensions, unknown extents, and operands that are no Dask arrays, `@` is Dask's own product.
    """
    global _users
    with _LOCK:
        if _users == 0:
            da.Array.__matmul__ = _matmul
        _users += 1
    token = _PRECISION.set(precision)
    try:
        yield
    finally:
        _PRECISION.reset(token)
        with _LOCK:
            _users -= 1
            if _users == 0:
                da.Array.__matmul__ = _own


@wraps(_own)
def _matmul(self: da.Array, other: Any) -> Any:
    precision = _PRECISION.get()
    if precision is not None and _is_ours(self) and _is_ours(other):
        return gemm(self, other, precision=precision)
    return _own(self, other)


def _is_ours(x: Any) -> bool:
    """Return whether `x` is a float32 matrix of known extents, without a mask."""
    return (
        isinstance(x, da.Array) and x.dtype == np.float32 and x.ndim == 2 and not np.isnan(x.shape).any()
        and not isinstance(x._meta, np.ma.MaskedArray)  # noqa: SLF001 - as Dask's own modules do
    )  # fmt: skip
