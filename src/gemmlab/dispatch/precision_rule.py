"""The precision of a call of `gemmlab.gemm`: never lower than requested."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.precision import BF16X3, BF16X6, BF16X9, BY_TILE, F16X3, FLOAT32, PRECISIONS, TF32, TF32X3

HIGHEST = "highest"
REQUESTS: Mapping[str, tuple[str, ...]] = {
    HIGHEST: (FLOAT32,),
    "float32": (FLOAT32, BY_TILE),
    BF16X9: (FLOAT32, BF16X9),
    BF16X6: (FLOAT32, BF16X6),
    TF32X3: (FLOAT32, TF32X3),
    F16X3: (FLOAT32, F16X3),
    BF16X3: (FLOAT32, BF16X3),
    TF32: (FLOAT32, BY_TILE, TF32),
}
"""The precisions that satisfy each request, the highest first. `highest` is JAX's name; `float32` allows errors
comparable to those of float32's own chain of multiply-adds: larger for some short sums and for constant matrices.
"""
METHODS = (BF16X9, BF16X6, TF32X3, F16X3, BF16X3)
"""Requests that name one way to compute. For one product it is used wherever it runs, even if another is faster."""


def request_for(precision: str) -> str:
    """Return the request whose lowest precision is `precision`, that of a kernel: `"float32"` for `by_tile`."""
    return next(request for request, those in REQUESTS.items() if those[-1] == precision)


def precision_for(name: object, offered: Collection[str]) -> str:
    """Return the lowest of the precisions `offered` that satisfies the request `name`: the fastest one.

    Raises `ArgumentTypeError` if the request is not text, and `UsageError` if it is unknown or no precision offered
    satisfies it.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"gemm: precision is {name!r}; it must be one of {_names()}")
    if name not in REQUESTS:
        raise UsageError(f"gemm: precision is {name!r}; it must be one of {_names()}")
    found = [precision for precision in no_lower(name) if precision in offered]
    if not found:
        raise UsageError(f"gemm: precision {name!r} is not offered here: there is {', '.join(offered) or 'nothing'}")
    return found[-1]


def no_lower(precision: str) -> tuple[str, ...]:
    """Return the precisions that satisfy a request, the highest first. `precision` is one of `REQUESTS`."""
    return REQUESTS[precision]


def forced_precisions(precision: str) -> Collection[str]:
    """Return the precisions of the kernels that a caller may name together with this request.

    For `METHODS` they are those of `no_lower`, for other requests all that are no lower than the request's lowest one.
    """
    lowest = max(PRECISIONS.index(each) for each in no_lower(precision))
    return no_lower(precision) if precision in METHODS else PRECISIONS[: lowest + 1]


def _names() -> str:
    return ", ".join(repr(name) for name in REQUESTS)
