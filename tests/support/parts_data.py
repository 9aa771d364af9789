"""Operands of products of parts: data that parts hold well, data that they do not, and data made to deceive them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Operands = tuple[Array, Array]
Maker = Callable[[np.random.Generator, int, int, int], Operands]
"""Makes A (m x k) and B (k x n)."""
LARGEST = float(np.finfo(np.float32).max)


def _both(fill: Callable[[np.random.Generator, tuple[int, int]], npt.NDArray[np.float64]]) -> Maker:
    def make(rng: np.random.Generator, m: int, n: int, k: int) -> Operands:
        return fill(rng, (m, k)).astype(np.float32), fill(rng, (k, n)).astype(np.float32)

    return make


def _changed(change: Callable[[np.random.Generator, Array, Array], None]) -> Maker:
    """Normal data that `change` changes in place."""

    def make(rng: np.random.Generator, m: int, n: int, k: int) -> Operands:
        a, b = NORMAL(rng, m, n, k)
        change(rng, a, b)
        return a, b

    return make


def _huge_row(_rng: np.random.Generator, a: Array, _b: Array) -> None:
    a[len(a) // 2] *= 2.0**40


def _huge_element(_rng: np.random.Generator, a: Array, b: Array) -> None:
    a[3, a.shape[1] // 2] = 1e30
    b[-1, 5] = -1e25


def _sparse(rng: np.random.Generator, a: Array, b: Array) -> None:
    for x in (a, b):
        x[rng.random(x.shape) >= 0.01] = 0


def _identity(_rng: np.random.Generator, a: Array, _b: Array) -> None:
    a[...] = np.eye(*a.shape)


def _one_hot(rng: np.random.Generator, a: Array, _b: Array) -> None:
    a[...] = 0
    a[np.arange(len(a)), rng.integers(0, a.shape[1], len(a))] = 1


def _cancellation(rng: np.random.Generator, a: Array, b: Array) -> None:
    """Every second term takes the one before away but for its last bits."""
    pairs = a.shape[1] // 2
    near = 1 + rng.integers(-4, 5, (len(a), pairs)) * 2.0**-23
    a[:, 1 : 2 * pairs : 2] = -a[:, 0 : 2 * pairs : 2] * near.astype(np.float32)
    b[1 : 2 * pairs : 2] = b[0 : 2 * pairs : 2]


def _largest(rng: np.random.Generator, a: Array, b: Array) -> None:
    a[...] = rng.choice([-LARGEST, LARGEST], a.shape)
    b *= np.float32(2.0**-12)


def _tiny_by_huge(_rng: np.random.Generator, a: Array, b: Array) -> None:
    a *= np.float32(2.0**-120)
    b *= np.float32(2.0**100)


def _subnormal(rng: np.random.Generator, a: Array, b: Array) -> None:
    a[...] = rng.integers(-(2**22), 2**22, a.shape) * 2.0**-149
    b *= np.float32(2.0**100)


def _small_by_large(distance: int, share: float) -> Maker:
    """A's small elements, a `share` of them and 2^-distance of the others, meet B's large ones, and the other way
    round: what a part of a small element loses is not small beside the sum.
    """

    def change(rng: np.random.Generator, a: Array, b: Array) -> None:
        small = rng.random(a.shape[1]) < share
        a[:, small] *= np.float32(2.0**-distance)
        b[~small] *= np.float32(2.0**-distance)

    return _changed(change)


def _far_below(largest_a: int, largest_b: int, below: int) -> Maker:
    """Sums of small elements alone: the elements 2^`largest_a` and 2^`largest_b`, one of each 128 of k, meet zeros. All
    others are positive and 2^-`below` of them.
    """

    def make(rng: np.random.Generator, m: int, n: int, k: int) -> Operands:
        a, b = (1 + rng.random(shape) for shape in ((m, k), (k, n)))
        a, b = a * 2.0 ** (largest_a - below), b * 2.0 ** (largest_b - below)
        a[:, ::128], a[:, 1::128] = 2.0**largest_a, 0
        b[::128], b[1::128] = 0, 2.0**largest_b
        return a.astype(np.float32), b.astype(np.float32)

    return make


def single_term(rng: np.random.Generator, m: int, n: int, k: int) -> Operands:
    """Rows and columns that are half full, and of whose products only one is not zero: 1 times a normal number."""
    a, b = np.zeros((m, k), np.float32), rng.standard_normal((k, n)).astype(np.float32)
    a[:, ::2] = 1
    met = 2 * rng.integers(0, k // 2, n), np.arange(n)
    term = b[met]
    b[::2] = 0
    b[met] = term
    return a, b


NORMAL = _both(lambda rng, shape: rng.standard_normal(shape))
KINDS: Mapping[str, Maker] = {
    "normal": NORMAL,
    "uniform": _both(lambda rng, shape: rng.random(shape)),
    "wide": _both(lambda rng, shape: rng.random(shape) * np.exp(2 * rng.standard_normal(shape))),
    "wider": _both(lambda rng, shape: rng.random(shape) * np.exp(6 * rng.standard_normal(shape))),
    "huge row": _changed(_huge_row),
    "huge element": _changed(_huge_element),
    "1 % dense": _changed(_sparse),
    "identity": _changed(_identity),
    "one-hot": _changed(_one_hot),
    "integers": _both(lambda rng, shape: rng.integers(-(2**24), 2**24 + 1, shape).astype(np.float64)),
    "cancellation": _changed(_cancellation),
    "largest": _changed(_largest),
    "tiny by huge": _changed(_tiny_by_huge),
    "subnormal": _changed(_subnormal),
    "small by large": _small_by_large(26, 0.5),
    "few small by few large": _small_by_large(26, 0.24),
    "far smaller by large": _small_by_large(60, 0.5),
    "far below by far below": _far_below(40, 40, 98),
    "far below, of opposite ranges": _far_below(-50, 55, 60),
}
"""Makers of operands by what is special about them."""
