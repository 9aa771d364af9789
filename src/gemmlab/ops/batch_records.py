"""The structures that kernels of batches take by value, besides their other arguments.

They are copied when a launch is queued, so they need no GPU memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gemmlab.core.errors import UsageError

AXES = 4
"""The most leading axes of one launch."""
GROUP = 64
"""The most products of a group in one launch: 56 bytes each, and a launch has 4096 bytes for all of its arguments."""
_AXIS = np.dtype([("a", np.int64), ("b", np.int64), ("c", np.int64), ("extent", np.uint32), ("unused", np.uint32)])
GROUP_PRODUCT = np.dtype(
    [(name, np.int64) for name in "abc"]
    + [(name, np.int32) for name in ("m", "n", "k", "lda", "ldb", "ldc")]
    + [("first", np.uint32), ("unused", np.uint32)]
)
"""A product of a group in memory."""


class GroupProduct(NamedTuple):
    """One product of a group."""

    a: int
    b: int
    c: int
    """`a`, `b` and `c` are the distances in elements from the operands of the group's first product to those of this
    one.
    """
    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldc: int
    first: int
    """Number of the launch's tiles before those of this product, in a unit that is an argument of the kernel."""


def axes_value(axes: Sequence[tuple[int, int, int, int]]) -> np.void:
    """Return up to `AXES` leading axes (extent, steps of a, b and c in elements), the outermost first, as the kernels'
    `BatchAxes`: the innermost first, padded with extents of 1.
    """
    if len(axes) > AXES:
        raise UsageError(f"{len(axes)} leading axes; a launch takes {AXES}")
    value = np.zeros(AXES, _AXIS)
    value["extent"] = 1
    for index, (extent, a, b, c) in enumerate(reversed(axes)):
        value[index] = (a, b, c, extent, 0)
    return np.void(value.tobytes())


def group_value(products: Sequence[GroupProduct]) -> np.void:
    """Return up to `GROUP` products as the kernels' `Group`, padded with zeros."""
    if len(products) > GROUP:
        raise UsageError(f"{len(products)} products in a group; a launch takes {GROUP}")
    value = np.zeros(GROUP, GROUP_PRODUCT)
    for index, product in enumerate(products):
        value[index] = (*product, 0)
    return np.void(value.tobytes())
