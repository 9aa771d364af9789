"""Products of anything beside their float64 reference and its bound: what the differential tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.verify.elementwise import compare

Array = npt.NDArray[np.float32]
_FACTORS = (0.0, -0.0, 1.0, -1.0, 1e-42, float("nan"))
"""What the contract has rules for, and a subnormal number."""
ALPHAS = st.one_of(st.sampled_from(_FACTORS), st.floats(-4, 4, width=32))
BETAS = st.one_of(st.sampled_from((*_FACTORS, float("inf"))), st.floats(-4, 4, width=32))
SPECIAL = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-44, 1e-38)
# Nothing overflows here, and alpha is never infinite: then an order of evaluation decides between infinity and NaN.
_SCALES = (1.0, 1.0, 1e-20, 1e15)


def contents(data: st.DataObject, shape: tuple[int, ...], name: str) -> Array:
    """Random numbers of one scale, some of them special."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**20), f"seed of {name}"))
    scale = data.draw(st.sampled_from(_SCALES), f"scale of {name}")
    values = (rng.standard_normal(shape) * scale).astype(np.float32)
    for value in data.draw(st.lists(st.sampled_from(SPECIAL), max_size=3), f"special values in {name}"):
        if values.size:
            values.flat[rng.integers(values.size)] = value
    return values


def assert_right(result: Array, a: Array, b: Array, alpha: float, beta: float, c: Array) -> None:
    """Whether `result` is alpha a b + beta c within the bound, and NaN and infinite where that is."""
    (m, k), n = a.shape, b.shape[1]
    inputs: dict[str, Any] = {"a": a, "b": b, "c": c}
    expected = GemmOp().reference(GemmProblem(m, n, k, alpha, beta), inputs)["c"]
    comparison = compare("c", result, expected, k)
    assert comparison.mismatch is None, comparison.mismatch.explain()
