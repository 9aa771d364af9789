"""The structures `BatchAxes` and `Group`, which kernels of batches take by value.

They are copied when a launch is queued, so they need no GPU memory. A leading axis is an axis of an array of matrices
before the last two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gemmlab.core.errors import UsageError

AXES = 4
"""Most leading axes of one launch."""
GROUP = 64
"""Most products of a group in one launch: each takes 56 bytes, and all arguments of a launch at most 4096."""
_AXIS = np.dtype([("a", np.int64), ("b", np.int64), ("c", np.int64), ("extent", np.uint32), ("unused", np.uint32)])
GROUP_PRODUCT = np.dtype(
    [(name, np.int64) for name in "abc"]
    + [(name, np.int32) for name in ("m", "n", "k", "lda", "ldb", "ldc")]
    + [("first", np.uint32), ("unused", np.uint32)]
)
"""The layout of a product of a group in memory, as kernels read it."""


class GroupProduct(NamedTuple):
    """One product of a group: products of any shapes that one launch computes."""

    a: int
    b: int
    c: int
    """`a`, `b` and `c` are distances in elements: from each operand that is an argument of the launch to the operand of
    this product.
    """
    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldc: int
    first: int
    """Number of tiles of the products before this one, divided by a number of tiles that is an argument of the
    kernel.
    """


def axes_value(axes: Sequence[tuple[int, int, int, int]]) -> np.void:
    """Return leading axes as the bytes of `BatchAxes`: the innermost first, padded to `AXES` axes with extents of 1.

    `axes` has extent and steps of a, b and c in elements, the outermost axis first. Raises `UsageError` for more than
    `AXES` axes.
    """
    if len(axes) > AXES:
        raise UsageError(f"{len(axes)} leading axes; a launch takes {AXES}")
    value = np.zeros(AXES, _AXIS)
    value["extent"] = 1
    for index, (extent, a, b, c) in enumerate(reversed(axes)):
        value[index] = (a, b, c, extent, 0)
    return np.void(value.tobytes())


def group_value(products: Sequence[GroupProduct]) -> np.void:
    """Return products as the bytes of `Group`, padded with zeros. Raises `UsageError` for more than `GROUP`
    products.
    """
    if len(products) > GROUP:
        raise UsageError(f"{len(products)} products in a group; a launch takes {GROUP}")
    value = np.zeros(GROUP, GROUP_PRODUCT)
    for index, product in enumerate(products):
        value[index] = (*product, 0)
    return np.void(value.tobytes())
