"""What parts of float32 hold, in NumPy: errors, verdicts on strips as `verdicts.cuh` has them, and a chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gemmlab.core.precision import SMALLEST_NORMAL, UNIT_ROUNDOFF

Array = npt.NDArray[np.float32]
BLOCK = 128
"""Elements of k with one scale."""
STRIP = 128
"""Rows of A, or columns of B, of a tile."""
MOST_ODD = 16
"""Lines that `by_tile` computes apart, of each operand."""


def errors(c: Array, a: Array, b: Array) -> npt.NDArray[np.float64]:
    """|C - A B| / (2^-24 |A| |B|) by element; what the smallest numbers cannot express is no error."""
    exact, magnitude = a.astype(np.float64) @ b.astype(np.float64), np.abs(a).astype(np.float64) @ np.abs(b)
    error = np.maximum(np.abs(c - exact) - (a.shape[1] + 12) * SMALLEST_NORMAL, 0.0)
    return _units(error, magnitude)


def _units(error: npt.NDArray[np.float64], magnitude: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(error > 0, error / np.where(magnitude > 0, magnitude, 1.0), 0.0) / UNIT_ROUNDOFF


def chain(a: Array, b: Array) -> Array:
    """A B by one float32 multiply-add after the other, in the order of k: `naive`."""
    sums = np.zeros((len(a), b.shape[1]), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for left, right in zip(a.T.astype(np.float64), b.astype(np.float64), strict=True):
            # The product of two float32 is exact in float64.
            sums = (np.multiply.outer(left, right) + sums).astype(np.float32)
    return sums


@dataclass(frozen=True)
class Verdict:
    """The findings of `verdicts.cuh` about strips: arrays of one value a strip, and the lines listed as odd."""

    unfit: npt.NDArray[np.bool_]
    wide: npt.NDArray[np.bool_]
    small: npt.NDArray[np.bool_]
    thin: npt.NDArray[np.bool_]
    wider: npt.NDArray[np.bool_]
    odd: tuple[int, ...] = ()


def verdict(x: Array, strip: int = STRIP, *, odd: bool = True) -> Verdict:
    """The verdicts on the strips of rows of x (rows x k), by the same conditions, written for whole arrays. Without
    `odd` those 128 elements of a row that halves do not hold say nothing.
    """
    sizes = np.abs(x).view(np.uint32).astype(np.int64)
    found = np.zeros((-(-len(x) // strip), 5), bool)
    apart = set[int]()
    for first in range(0, x.shape[1], BLOCK):
        bits = _bits_of(sizes[:, first : first + BLOCK])
        unsuited = ~_halves_suit(*bits.T[:4])
        apart |= set(np.flatnonzero(unsuited).tolist())
        if not odd:
            bits[unsuited] = False
        for place in range(len(found)):
            found[place] |= bits[place * strip : (place + 1) * strip].any(axis=0)
    unfit, wide, small, thin, wider = found.T
    return Verdict(unfit, wide, small, thin, wider, tuple(sorted(apart)))


def _bits_of(block: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """The verdicts on rows of one block, in the order of `Verdict`; rows of zeros alone say nothing."""
    largest, count = block.max(axis=1), block.shape[1]
    apart = (largest >> 23) - (np.where(block == 0, 2**32 - 1, block - 1).min(axis=1) >> 23)
    below = (block < (largest - np.minimum(largest, 12 << 23))[:, np.newaxis]).sum(axis=1)
    unfit = (largest >> 23 < 67) | (largest >> 23 > 187)
    thin = 4 * (block == 0).sum(axis=1) > 3 * count
    bits = np.stack([unfit, apart > 27, 4 * below > count, thin, apart > 100], axis=1)
    bits[largest == 0] = False
    return bits


def _halves_suit(
    unfit: npt.NDArray[np.bool_], wide: npt.NDArray[np.bool_], small: npt.NDArray[np.bool_],
    thin: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:  # fmt: skip
    return ~unfit & ~thin & ~(wide & small)


def ways(a: Array, b: Array, *, apart: bool = False) -> tuple[int, int, int]:
    """The number of tiles that halves suit, that bfloat16 suits, and that are left for multiply-adds.

    With `apart` few odd lines do not count, as in `by_tile`, which computes them apart.
    """
    across = np.ascontiguousarray(b.T)
    odd = not apart or max(len(verdict(a).odd), len(verdict(across).odd)) > MOST_ODD
    of_a, of_b = verdict(a, odd=odd), verdict(across, odd=odd)

    def either(name: str) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = getattr(of_a, name)[:, np.newaxis] | getattr(of_b, name)
        return found

    halves = _halves_suit(either("unfit"), either("wide"), either("small"), either("thin"))
    bfloats = ~halves & ~either("unfit") & ~either("wider")
    return int(halves.sum()), int(bfloats.sum()), int((~halves & ~bfloats).sum())


def errors_of_halves(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """Units that the products of parts lose, with their sums in float64."""
    (a1, a2), (b1, b2) = halves_of(a), halves_of(np.ascontiguousarray(b.T))
    kept = a1 @ b1.T + a1 @ b2.T + a2 @ b1.T
    exact, magnitude = a.astype(np.float64) @ b, np.abs(a).astype(np.float64) @ np.abs(b)
    return _units(np.abs(kept - exact), magnitude)


def halves_of(x: Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Both parts of each element of x (rows x k), scales undone."""
    high, low = np.zeros(x.shape), np.zeros(x.shape)
    for first in range(0, x.shape[1], BLOCK):
        block = x[:, first : first + BLOCK].astype(np.float64)
        exponent = np.frexp(np.abs(block).max(axis=1))[1] - 1
        up = np.ldexp(1.0, exponent - 14)[:, np.newaxis]
        one = (block / up).astype(np.float16).astype(np.float64)
        two = ((block / up - one) * 2048).astype(np.float16).astype(np.float64) / 2048
        high[:, first : first + BLOCK], low[:, first : first + BLOCK] = one * up, two * up
    return high, low
