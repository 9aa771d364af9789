"""The precision of a library call: never lower than requested."""

from __future__ import annotations

from collections.abc import Collection

from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.precision import FLOAT32, PRECISIONS, TF32

HIGHEST = "highest"
LOWEST = {HIGHEST: FLOAT32, "tf32": TF32}
"""The lowest precision that satisfies a request, by the names that JAX and torch use for requests."""


def precision_for(name: object, offered: Collection[str]) -> str:
    """Return the lowest of the precisions `offered` that is no lower than requested: the fastest that will do.

    Raises `ArgumentTypeError` unless the request is text, `UsageError` if it is unknown or nothing offered will do.
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"gemm: precision is {name!r}; it must be one of {_names()}")
    if name not in LOWEST:
        raise UsageError(f"gemm: precision is {name!r}; it must be one of {_names()}")
    found = [precision for precision in no_lower(name) if precision in offered]
    if not found:
        raise UsageError(f"gemm: precision {name!r} is not offered here: there is {', '.join(offered) or 'nothing'}")
    return found[-1]


def no_lower(precision: str) -> tuple[str, ...]:
    """Return the precisions that will do, the highest first. `precision` is one of `LOWEST`."""
    return PRECISIONS[: PRECISIONS.index(LOWEST[precision]) + 1]


def _names() -> str:
    return ", ".join(repr(name) for name in LOWEST)
