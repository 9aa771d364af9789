"""Products whose right operand is packed (`gemmlab.pack`). Each strip of 32 columns is one product of a stack:

    C[:, 32 s : 32 s + 32] = alpha * A strip[s] + beta * C[:, 32 s : 32 s + 32]

A strip is a matrix with adjacent rows, so the compiled product reads it in place, from one end to the other. How C is
divided does not change a result's bits, so they are those of a product with an array in C order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import is_device_array
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cpu_precision import FORCED

Float32Array = npt.NDArray[np.float32]
Run = Callable[[Float32Array, Float32Array, Float32Array], None]
"""A function (left matrices, right matrices, results) that computes a stack of products."""


class Strips(Protocol):
    """A packed operand of `shape` (k, n); `strips` has shape (number of strips, k, width)."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def strips(self) -> Float32Array: ...


def require_usable(call: Call, packed: type) -> None:
    """Raise `UsageError` or `ArgumentTypeError` for a call that cannot use a packed operand."""
    for name, array in call.arrays.items():
        if name != "b" and isinstance(array, packed):
            raise ArgumentTypeError(f"gemm: {name} is a packed operand; only b can be one")
    if call.trans_b:
        raise UsageError("gemm: trans_b does not apply to a packed b; pack(b, trans_b=True) packs its transpose")
    if any(map(is_device_array, call.arrays.values())):
        raise UsageError("gemm: b was packed on the CPU; a, c and out must lie there, too")
    if call.forced:
        raise UsageError("gemm: b is packed for the default kernel; kernel and config need an array")
    if call.precision in FORCED:
        raise UsageError(f"gemm: b is packed in float32, and precision is {call.precision!r}")


@lru_cache(maxsize=64)
def zeros_of(shape: tuple[int, int]) -> Float32Array:
    """Return an array of zeros with the shape of an operand, for checks of shapes. It takes the memory of one."""
    return np.broadcast_to(np.float32(0), shape)


def by_strips(packed: Strips, left: Float32Array, full: Float32Array, beta: float, run: Run) -> None:
    """Call `run`, which applies alpha and beta, on stacks of products that together make up `full` (..., m, n).

    The first stack has the whole strips, the second the narrow last one, computed in a copy. If `beta` is not 0, the
    copy begins with the values of `full`. A single column is computed at once. `left` has shape (..., m, k).
    """
    strips = packed.strips
    batch = left.shape[:-2]
    n, width = packed.shape[1], strips.shape[-1]
    if n == 1:
        # A product with a single column has separate loops.
        run(left, np.broadcast_to(np.ascontiguousarray(strips[0, :, :1]), (*batch, packed.shape[0], 1)), full)
        return
    whole, rest = divmod(n, width)

    def rights(some: Float32Array) -> Float32Array:
        return np.broadcast_to(some, (*batch, *some.shape)) if batch else some

    if whole:
        # An axis that is divided needs no copy, whatever its stride.
        places = full[..., : whole * width].reshape(*full.shape[:-1], whole, width).swapaxes(-2, -3)
        lefts = np.broadcast_to(left[..., np.newaxis, :, :], (*batch, whole, *left.shape[-2:]))
        run(lefts, rights(strips[:whole]), places)
    if rest:
        edge = np.zeros((*full.shape[:-1], width), np.float32)
        if beta:
            edge[..., :rest] = full[..., whole * width :]
        run(left, rights(strips[-1]), edge)
        full[..., whole * width :] = edge[..., :rest]
