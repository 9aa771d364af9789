"""Float64 products by torch on a GPU, for the references of large products: a processor takes minutes for a suite."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from gemmlab.arrays.packages import memory_errors
from gemmlab.ops.gemm import float64_product
from gemmlab.ops.op import Float64Array

FEWEST = 1 << 33
"""Products of fewer multiply-adds are computed by NumPy: on a processor they take less than a tenth of a second."""
NOTE = "float64 references of large products: by torch's matmul on the GPU"


def product_on_gpu(ordinal: int) -> Callable[[Float64Array, Float64Array], Float64Array] | None:
    """Return a function that does as `float64_product`, for large finite products on a GPU if they fit into its memory.

    `None` without torch, or if torch has no GPU.
    """
    if find_spec("torch") is None:
        return None
    torch: Any = import_module("torch")
    if not torch.cuda.is_available():
        return None

    def on_gpu(a: Float64Array, b: Float64Array) -> Float64Array:
        x, y = (torch.from_numpy(matrix).to(f"cuda:{ordinal}") for matrix in (a, b))
        found: Float64Array = (x @ y).cpu().numpy()
        return found

    def product(a: Float64Array, b: Float64Array) -> Float64Array:
        large = a.shape[0] * a.shape[1] * b.shape[1] >= FEWEST
        if not (large and np.isfinite(a).all() and np.isfinite(b).all()):
            return float64_product(a, b)
        try:
            return on_gpu(a, b)
        except memory_errors():
            return float64_product(a, b)
        finally:
            # torch would keep the memory, which the contestants' processes may need.
            torch.cuda.empty_cache()

    return product
