"""Matrix products whose matrices lie in rows of memory, one row for each operand: contents and reference.

The gaps of A and B hold NaN, so that results are wrong if a kernel uses them; those of C hold numbers that must not
change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gemmlab.core.precision import FLOAT32
from gemmlab.ops.batch_problem import OPERANDS
from gemmlab.ops.gemm import GemmOp
from gemmlab.ops.gemm_problem import GemmProblem
from gemmlab.ops.op import Expected, Float32Array, Operand

UNTOUCHED = np.float32(-12345.678)
"""The initial value of every element of C's memory that belongs to no matrix."""
_ONE = GemmOp()


class Inside(NamedTuple):
    """One product, and the index of the first element of its matrix in the row of each operand."""

    product: GemmProblem
    first: Mapping[str, int]


def filled(words: Mapping[str, int], products: Iterable[Inside], rng: np.random.Generator) -> dict[str, Float32Array]:
    """Return a row of `words[name]` elements for each operand, with the products' contents and the gaps between."""
    gaps = {"a": np.float32(np.nan), "b": np.float32(np.nan), "c": UNTOUCHED}
    found = {name: np.full((1, words[name]), gaps[name], np.float32) for name in OPERANDS}
    for one in products:
        views = matrices(found, one)
        for name, values in _ONE.fill(one.product, rng).items():
            if values.size:
                views[name][...] = values
    return found


def referenced(
    inputs: Mapping[str, Float32Array], products: Iterable[Inside], roundings: int | None = None,
    precision: str = FLOAT32,
) -> dict[str, Expected]:  # fmt: skip
    """Return every product in float64 with its bound, in the row of C. Gaps keep their contents, with bound 0."""
    values = inputs["c"].astype(np.float64)
    bound = np.zeros_like(values)
    for one in products if values.size else ():
        expected = _ONE.reference(one.product, matrices(inputs, one), roundings, precision)["c"]
        for whole, part in ((values, expected.values), (bound, expected.bound)):
            matrices({"c": whole}, one)["c"][...] = part
    return {"c": Expected(values, bound)}


def matrices(rows: Mapping[str, np.ndarray[Any, Any]], one: Inside) -> dict[str, np.ndarray[Any, Any]]:
    """Return views of the matrices of a product, in their stored shapes, in the `rows` of memory by operand."""
    return {
        operand.name: _matrix(rows[operand.name], operand, one.first[operand.name])
        for operand in _ONE.operands(one.product)
        if operand.name in rows
    }


def _matrix(words: np.ndarray[Any, Any], operand: Operand, first: int) -> np.ndarray[Any, Any]:
    rows, cols, ld, size = operand.rows, operand.cols, operand.ld, words.itemsize
    if not rows * cols:
        return np.empty((rows, cols), words.dtype)
    inside = words[0, first : first + (rows - 1) * ld + cols]
    return np.lib.stride_tricks.as_strided(inside, (rows, cols), (ld * size, size))
